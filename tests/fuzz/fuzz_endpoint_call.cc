#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/jsonl.h"
#include "evald/error.h"
#include "worker/endpoint/api_error.h"
#include "worker/endpoint/call.h"
#include "worker/endpoint/tokenizer_calls.h"

namespace {

constexpr const char* kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3}, "merges": [["a", "b"]]}})";

const evald::endpoint::ServedModel& Model() {
  static const evald::endpoint::ServedModel model = [] {
    evald::endpoint::ServedModel served;
    served.name = "model";
    served.tokenizer = evald::Tokenizer::Parse(kTokenizer, "fuzz");
    served.chat.emplace("{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}",
                        evald::Json::object(), std::nullopt, "fuzz");
    served.max_length = 64;
    served.reports_tokens = true;
    return served;
  }();
  return model;
}

template <typename Read>
void Try(const evald::Json& body, Read read) {
  try {
    read(body, Model());
  } catch (const evald::endpoint::ApiError& error) {
    evald::ToLine(error.ToJson());
  }
}

}  // namespace

// Any JSON as the body of each call of the API.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  evald::Json body;
  try {
    body = evald::ParseJson({reinterpret_cast<const char*>(data), size}, "fuzz", 10'000);
  } catch (const evald::Error&) {
    return 0;
  }
  Try(body, evald::endpoint::ReadCompletionCall);
  Try(body, evald::endpoint::ReadChatCall);
  Try(body, evald::endpoint::Tokenize);
  Try(body, evald::endpoint::Detokenize);
  return 0;
}

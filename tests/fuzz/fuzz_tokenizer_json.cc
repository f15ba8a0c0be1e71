// A tokenizer.json, a zero byte, and a text to encode and decode with it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "evald/error.h"
#include "tokenizer/tokenizer.h"

namespace {

constexpr size_t kJsonBytesMax = 64 * 1024;
constexpr size_t kTextBytesMax = 2 * 1024;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view text = end == std::string_view::npos
                                    ? std::string_view("abc <s> \xC3\xA9 12\n")
                                    : input.substr(end + 1, kTextBytesMax);
  try {
    const auto tokenizer =
        evald::Tokenizer::Parse(input.substr(0, end).substr(0, kJsonBytesMax), "f");
    const std::vector<int32_t> tokens = tokenizer->Encode(text, true);
    tokenizer->Decode(tokens, false);
    tokenizer->Decode({0, 1, 2, -1, 300, INT32_MAX}, true);
    evald::Request request;
    request.kind = evald::RequestKind::kLoglikelihood;
    request.context = text;
    request.continuation = "a";
    evald::EncodeRequest(*tokenizer, &request);
  } catch (const evald::Error&) {
  }
  return 0;
}

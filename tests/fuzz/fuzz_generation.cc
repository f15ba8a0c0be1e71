// Lines of generations files, replies of external servers.
#include <cstdlib>
#include <string>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/generation.h"
#include "worker/server/completions.h"
#include "worker/server/dialect.h"

namespace {

void ReadLine(std::string_view text) {
  using namespace evald;
  try {
    const Generation generation = GenerationFromJson(ParseJson(text, "line"), "line");
    const std::string line = ToLine(ToJson(generation));
    if (ToLine(ToJson(GenerationFromJson(ParseJson(line, "line"), "line"))) != line) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) std::abort();
  }
}

void ReadReply(std::string_view text) {
  using namespace evald;
  if (!IsUtf8(server::ErrorText(text))) std::abort();
  try {
    if (!IsUtf8(server::ParseCompletion(text).text)) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInfrastructure) std::abort();
  }
}

// The reply as the answer to a call for scores, in every way of every server.
void ReadScores(std::string_view text) {
  using namespace evald;
  static const ScoreWindow kWindow{{5, 6, 7, 8}, {9}, 3};
  for (const char* engine : {"vllm", "sglang", "openai"}) {
    for (const auto& way : server::MakeDialect(engine)->ScoringWays({})) {
      try {
        for (const auto& score : way->Read({&kWindow}, text)) {
          if (score && !(score->logprob <= 1)) std::abort();
        }
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kInput && e.kind() != ErrorKind::kInfrastructure) std::abort();
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadLine(text);
  ReadReply(text);
  ReadScores(text);
  return 0;
}

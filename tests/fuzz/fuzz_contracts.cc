// What messages carry and what crosses from one process to another in files: any JSON is either
// read, and comes back from its own encoding unchanged, or is an Error(kInput).
#include <cstdlib>
#include <string>

#include "base/jsonl.h"
#include "evald/engine_info.h"
#include "evald/error.h"
#include "evald/generation.h"
#include "evald/request.h"
#include "evald/score.h"
#include "evald/task.h"

namespace {

using evald::Json;

template <typename Read>
void ReadTwice(const Json& json, Read read) {
  try {
    const std::string once = evald::ToLine(evald::ToJson(read(json, "input")));
    if (evald::ToLine(evald::ToJson(read(evald::ParseJson(once, "again"), "again"))) != once)
      std::abort();
  } catch (const evald::Error& e) {
    if (e.kind() != evald::ErrorKind::kInput) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Json json;
  try {
    json = evald::ParseJson({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const evald::Error&) {
    return 0;
  }
  ReadTwice(json, evald::EngineInfoFromJson);
  ReadTwice(json, evald::GenerationFromJson);
  ReadTwice(json, evald::SamplingFromJson);
  ReadTwice(json, evald::ScoreFromJson);
  ReadTwice(json, evald::TaskFromJson);
  ReadTwice(json, evald::GroupFromJson);
  return 0;
}

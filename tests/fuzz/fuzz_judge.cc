// Arbitrary bodies of a judge's server, and arbitrary words of a judge: a body is an answer or an
// error, and a score lies in its range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "evald/error.h"
#include "metrics/judge/reading.h"
#include "metrics/judge/spec.h"

namespace {

using evald::Json;

evald::JudgeSpec Spec(Json arguments) {
  evald::MetricSpec metric;
  metric.metric = "judge";
  arguments["prompt"] = "{{response}}";
  metric.kwargs = std::move(arguments);
  return evald::JudgeSpecOf(metric);
}

const std::vector<evald::JudgeSpec>& Specs() {
  static const std::vector<evald::JudgeSpec> specs = [] {
    std::vector<evald::JudgeSpec> made;
    made.push_back(Spec({{"pattern", "Score: *([0-9.]+)"}, {"range", {0, 1}}}));
    made.push_back(Spec({{"json", "$.verdict.score"}, {"range", {0, 1}}}));
    made.push_back(Spec({{"pattern", "([AB])"}, {"choices", {{"A", 1}, {"B", 0}}}}));
    made.push_back(Spec({{"pattern", "\\[\\[([ABC])\\]\\]"}, {"reference", "other"}}));
    return made;
  }();
  return specs;
}

void Read(const evald::Completion& answer) {
  for (const evald::JudgeSpec& spec : Specs()) {
    for (const bool swapped : {false, true}) {
      const evald::JudgeReading reading = evald::ReadVerdict(spec, answer, swapped);
      if (reading.score && !(*reading.score >= 0 && *reading.score <= 1)) std::abort();
      if (reading.score.has_value() != reading.why.empty()) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  evald::Completion words;
  words.text.assign(reinterpret_cast<const char*>(data), size);
  Read(words);
  evald::RefusalIn(words.text);
  try {
    Read(evald::ReadCompletion(words.text));
  } catch (const evald::Error&) {
  }
  return 0;
}

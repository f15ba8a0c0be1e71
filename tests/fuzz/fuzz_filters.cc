// Filters and exact_match on arbitrary model output: a task in gsm8k's manner and every text
// filter.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/scorer.h"

namespace {

evald::TaskDefinition Task() {
  using evald::Json;
  evald::TaskDefinition task;
  task.name = "fuzz";
  task.output_type = "generate_until";
  task.metrics = {{"exact_match",
                   "",
                   "mean",
                   true,
                   {{"ignore_case", true},
                    {"ignore_punctuation", true},
                    {"regexes_to_ignore", {",", "\\$", "(?s).*#### ", "\\.$"}}}}};
  const Json none = Json::object();
  const evald::FilterStep first{"take_first", none};
  task.filters = {
      {"regex",
       {{"regex", {{"group_select", -1}, {"regex_pattern", "(-?[$0-9.,]{2,})|(-?[0-9]+)"}}},
        first}},
      {"choice",
       {{"multi_choice_regex",
         {{"regex_pattern", "(\\([A-Z]\\))"}, {"ignore_case", true}, {"ignore_punctuation", true}}},
        first}},
      {"span", {{"format_span", none}, first}},
      {"pos", {{"regex_pos", none}, first, {"majority_vote", none}, first}},
      {"code",
       {{"custom", {{"filter_fn", "!function mbpp/utils.build_predictions"}}},
        {"lowercase", none},
        {"remove_whitespace", none},
        first}}};
  return task;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const evald::Scorer scorer(Task(), nullptr);
  evald::PreparedDocument document;
  document.doc = {{"choices", {"Guilty", "Guilty of Romance", "Not!"}}};
  document.target = "#### 18";
  evald::Generation generation;
  generation.text.assign(reinterpret_cast<const char*>(data), size);
  try {
    scorer.Score(document, {generation});
  } catch (const evald::Error&) {
  }
  return 0;
}

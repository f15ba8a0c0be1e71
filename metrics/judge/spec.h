#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_path.h"
#include "evald/json.h"
#include "evald/task.h"
#include "jinja/template.h"
#include "python/regex.h"

namespace evald {

/// One message of a judge's prompt.
struct JudgeMessage {
  std::string role;  ///< system, user or assistant
  std::shared_ptr<const jinja::Template> content;
};

/// The metric `judge` as a task's file describes it (docs/metrics.md, "A judge"): what is asked,
/// and how the verdict is read. It says nothing of the server. Immutable; any thread may read.
struct JudgeSpec {
  std::string name;  ///< in results
  std::vector<JudgeMessage> messages;

  /// Of a pair: the document's field with the other response; "": the response is rated alone
  std::string reference;
  bool differ_is_tie = false;  ///< of a pair: verdicts that differ between the orders are a tie

  // How the verdict's text is found in an answer: by a pattern, or by a path in JSON.
  std::optional<PythonRegex> pattern;
  int group = 1;
  bool first_match = false;
  std::optional<JsonPath> path;

  /// What the text counts: by its choice, of a pair as the score of the answer A; else it is a
  /// number in `range`
  std::vector<std::pair<std::string, double>> choices;
  std::optional<std::pair<double, double>> range;

  int votes = 1;
  bool majority = false;           ///< the most frequent vote; else the mean
  int reasks = 2;                  ///< of an answer without a verdict
  std::optional<double> unparsed;  ///< the score if there is still none
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
  int64_t seed = 1234;
  Json response_format;  ///< of the call; null: none

  bool pair() const { return !reference.empty(); }
};

/// Reads the arguments of an entry of metric_list. Throws Error(kInput) "the metric 'judge': ..."
/// for an unknown key, with the nearest known one, for a wrong value, a template that does not
/// parse, a pattern without the group, and a number without a range.
JudgeSpec JudgeSpecOf(const MetricSpec& metric);

}  // namespace evald

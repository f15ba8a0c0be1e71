#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/task.h"
#include "metrics/sandbox/sandbox.h"
#include "metrics/scoring/aggregation.h"
#include "prepared/prepared_task.h"

// A metric, as its file describes it: one rule for each output type that has the metric. metrics.cc
// has the table of all. The rules are those of ConfigurableTask.process_results of lm_eval 0.4.13
// (api/task.py).
namespace evald {

/// The gold answer and the filtered response of one document of a generate_until task.
struct TextAnswer {
  Json gold;    ///< a string; with several targets a list of strings
  Json result;  ///< mostly a string; a list of strings if no filter chose one
  const PreparedDocument* document = nullptr;  ///< never null where a task is scored
};

/// Adds a metric's values to `metrics`, and an account of its programs to `detail`. Throws
/// AnswerError or RegexGivenUp for an answer that cannot be scored, and Error(kInput) if the
/// harness raises.
using TextScorer = std::function<void(const TextAnswer& answer, Json* metrics, Json* detail)>;

/// A metric of generate_until.
struct TextRule {
  ValueForm gives = ValueForm::kNumber;
  bool runs_code = false;       ///< the target is the text of a test
  bool scores_nothing = false;  ///< any target and any response will do
  bool compares_math = false;   ///< by metrics/math_metric.h, in the place of `make`
  /// Whether a list of targets that holds no text is scored; null if it never is.
  bool (*takes_targets)(const MetricSpec& spec, const Json& targets) = nullptr;
  /// Throws Error(kInput) for a document that cannot be scored whatever the answer is; null if only
  /// the target decides.
  void (*check)(const MetricSpec& spec, const PreparedDocument& document) = nullptr;
  /// For a metric that names its values itself: what each name begins with.
  const char* value_prefix = nullptr;
  /// The names of its values for any document; null if that is the metric's name.
  std::vector<std::string> (*value_names)(const TaskDefinition&, const MetricSpec&) = nullptr;
  /// Throws Error(kInput) for arguments that the metric does not take. `runner` is null if nothing
  /// will be scored.
  TextScorer (*make)(const TaskDefinition& task, const MetricSpec& spec,
                     CodeRunner* runner) = nullptr;
};

/// One label or several.
struct GoldLabels {
  static constexpr int64_t kOutOfRange =
      -100;  ///< the harness's mark for a label that is no choice
  std::vector<int64_t> labels;
  bool several = false;

  bool Holds(size_t choice) const;
};

/// A document of a multiple_choice task, and the responses to its choices.
struct ChoiceAnswer {
  const PreparedDocument& document;
  const std::vector<std::string>& choices;
  const GoldLabels& gold;
  const std::vector<double>& loglikelihoods;
  const std::vector<bool>& greedy;
  /// The log-likelihood of each choice without the context; empty unless a metric of the task needs
  /// them.
  const std::vector<double>& unconditional;

  /// The choice with the largest log-likelihood.
  size_t Predicted() const;
  /// The gold label, or the target as the document has it if there are several.
  Json Gold() const;
};

/// A metric of multiple_choice.
struct ChoiceRule {
  ValueForm gives = ValueForm::kNumber;
  bool unconditional = false;  ///< needs ChoiceAnswer::unconditional
  /// Throws Error(kInput) for a document that cannot be scored whatever the answer is.
  void (*check)(const PreparedDocument&, const GoldLabels&, size_t choices) = nullptr;
  Json (*score)(const ChoiceAnswer&) = nullptr;  ///< null: the metric has no value
};

/// A metric of loglikelihood.
struct LikelihoodRule {
  ValueForm gives = ValueForm::kNumber;
  /// Gets the log-likelihood as in a scores file. Null: the metric has no value.
  Json (*score)(const Json& loglikelihood, bool greedy) = nullptr;
};

/// A metric of loglikelihood_rolling: a pair of the log-likelihood and a length of the text.
struct RollingRule {
  ValueForm gives = ValueForm::kPair;
  int64_t (*length)(const std::string& text) = nullptr;
};

struct Metric {
  const char* name;
  /// The function of lm_eval's tasks that the metric is, "humaneval/utils.pass_at_k", by which a
  /// task names it; otherwise "", and a task names the metric.
  const char* function = "";
  const char* aggregation = "";  ///< if a task names none; "": each task must name one
  bool higher_is_better = true;
  // Without any rule the metric is known, and not served.
  std::optional<TextRule> text = std::nullopt;
  std::optional<ChoiceRule> choice = std::nullopt;
  std::optional<LikelihoodRule> likelihood = std::nullopt;
  std::optional<RollingRule> rolling = std::nullopt;
};

// For files of metrics.

TextScorer MakeTargetAndAnswer(const TaskDefinition& task, const MetricSpec& spec, CodeRunner*);

/// The rule of a metric whose value is the list of target and answer: that of every function of
/// lm_eval's metrics that gives back what it gets. With several targets the harness's value is 1.0,
/// which only an aggregation of the task's own can take; others are refused.
inline constexpr TextRule kTargetAndAnswer = {
    .gives = ValueForm::kTexts,
    .takes_targets = [](const MetricSpec&, const Json&) { return true; },
    .make = MakeTargetAndAnswer};

/// The texts of a list, or the one text. Throws AnswerError for null, and Error(kInput) for
/// anything else, after "<what>: ".
std::vector<std::string> TextsOf(const Json& value, const char* what);

/// A list of numbers in the form of scores files.
Json ScoreNumbers(const std::vector<double>& values);

}  // namespace evald

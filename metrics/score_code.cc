// process_results by the task's own Python function.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/line_index.h"
#include "metrics/process_results.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/metrics.h"
#include "task_code/task_code.h"

namespace evald {
namespace {

// The harness gives the function the responses of a document's requests as they are: texts, pairs
// of log-likelihood and greediness, or log-likelihoods.
TaskCode::Results FormOf(const TaskDefinition& task) {
  if (task.output_type == "generate_until") return TaskCode::Results::kTexts;
  if (task.output_type == "loglikelihood_rolling") return TaskCode::Results::kNumbers;
  return TaskCode::Results::kPairs;
}

class CodeResults : public ProcessResults {
 public:
  CodeResults(const TaskDefinition& task, TaskCode* code)
      : function_(task.process_results),
        form_(FormOf(task)),
        choice_(task.output_type == "multiple_choice"),
        unconditional_(choice_ && NeedsUnconditional(task.metrics)),
        code_(code) {
    for (const MetricSpec& spec : task.metrics) {
      names_.push_back(spec.metric);
      if (!OwnAggregation(spec.aggregation).empty()) aggregated_by_code_.push_back(spec.metric);
    }
  }

  size_t Requests(const PreparedDocument& document) const override {
    return choice_ ? document.choices.size() * (unconditional_ ? 2 : 1) : 1;
  }

  std::vector<std::string> Metrics() const override { return names_; }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json* detail) const override {
    Json python;
    Fallbacks fallbacks;
    return RunKeeping(document, filtered, detail, &python, &fallbacks);
  }

  Json RunKeeping(const PreparedDocument& document, const std::vector<Json>& filtered, Json*,
                  Json* python, Fallbacks*) const override {
    if (code_ == nullptr)
      throw Error(ErrorKind::kInternal, "no process runs the functions of the task");
    TaskCode::Metrics metrics = code_->ProcessResults(function_, document.doc, document.python,
                                                      filtered, form_, aggregated_by_code_);
    if (metrics.values.size() > kMetricsMax) {
      throw Error(ErrorKind::kInput,
                  fmt::format("the function '{}' gives {} metrics, expected at most {}", function_,
                              metrics.values.size(), kMetricsMax));
    }
    for (const auto& [name, value] : metrics.values.items()) CheckName(name);
    CheckBytes(metrics.values);
    CheckBytes(metrics.python);
    *python = metrics.python.empty() ? Json() : std::move(metrics.python);
    return std::move(metrics.values);
  }

 private:
  // Values may be texts. The aggregation reads those of a document together.
  void CheckBytes(const Json& values) const {
    const size_t bytes = ToLine(values).size();
    if (bytes <= kNumbersBytesMax) return;
    throw Error(ErrorKind::kInput,
                fmt::format("the function '{}' gives metrics of {}, expected at most {}", function_,
                            HumanBytes(bytes), HumanBytes(kNumbersBytesMax)),
                "let the function give less for each document");
  }

  // Names become keys of results, "<name>,<filter>".
  void CheckName(const std::string& name) const {
    constexpr size_t kBytesMax = 200;
    const bool fine = !name.empty() && name.size() <= kBytesMax &&
                      name.find(',') == std::string::npos && name.find('\n') == std::string::npos &&
                      !name.ends_with("_stderr");
    if (fine) return;
    throw Error(
        ErrorKind::kInput,
        fmt::format("the function '{}' gives a metric the name '{}', expected 1 to {} bytes "
                    "without commas and line feeds, and no '_stderr' at the end",
                    function_, name.substr(0, kBytesMax), kBytesMax));
  }

  std::string function_;
  TaskCode::Results form_;
  bool choice_;
  bool unconditional_;
  TaskCode* code_;
  std::vector<std::string> names_;
  std::vector<std::string> aggregated_by_code_;  ///< metrics
};

}  // namespace

std::unique_ptr<ProcessResults> MakeCodeResults(const TaskDefinition& task, TaskCode* code) {
  return std::make_unique<CodeResults>(task, code);
}

}  // namespace evald

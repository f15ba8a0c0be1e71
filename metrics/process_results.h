#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "metrics/math_comparer.h"
#include "metrics/sandbox/sandbox.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/task_results.h"
#include "prepared/prepared_task.h"
#include "task_code/task_code.h"

namespace evald {

/// The metrics of one document under one filter, from the filtered responses of its requests, as in
/// ConfigurableTask.process_results of lm_eval 0.4.13 (api/task.py).
class ProcessResults {
 public:
  virtual ~ProcessResults() = default;

  /// The number of requests of a document.
  virtual size_t Requests(const PreparedDocument&) const { return 1; }

  /// Throws Error(kInput) for a document whose target or choices Run would refuse for any answer,
  /// so that this is known before an answer is computed. A document that passes may still be
  /// refused because of its answer.
  virtual void Check(const PreparedDocument&) const {}

  /// The names for which Run gives a number or a value to aggregate, for any documents. A document
  /// may lack one: pass@8 of four programs.
  virtual std::vector<std::string> Metrics() const = 0;

  /// `filtered` holds one value per request, in order of idx. Returns metric name -> value, in the
  /// harness's order. Appends a code metric's details to `detail`. Throws AnswerError
  /// or RegexGivenUp for an answer that cannot be scored, and Error(kInput) if
  /// the harness raises.
  virtual Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
                   Json* detail) const = 0;

  /// The same, with what FilterScore::python holds of the values. An answer that a metric could not
  /// compare counts in `fallbacks`.
  virtual Json RunKeeping(const PreparedDocument& document, const std::vector<Json>& filtered,
                          Json* detail, Json* /*python*/, Fallbacks* /*fallbacks*/) const {
    return Run(document, filtered, detail);
  }
};

/// Chooses by the task's output_type. Throws Error(kInput) for a metric, argument or function that
/// is unknown or not supported, with the nearest known one.
std::unique_ptr<ProcessResults> MakeProcessResults(const TaskDefinition& task, CodeRunner* runner,
                                                   TaskCode* code, MathComparer* math = nullptr);

/// The parts of MakeProcessResults: score_code.cc, score_task.cc (functions of lm_eval's tasks that
/// are built in), score_generation.cc, score_likelihood.cc and score_choice.cc.
std::unique_ptr<ProcessResults> MakeCodeResults(const TaskDefinition& task, TaskCode* code);
std::unique_ptr<ProcessResults> MakeTaskResults(const TaskDefinition& task,
                                                const TaskResults& results);
std::unique_ptr<ProcessResults> MakeGenerationResults(const TaskDefinition& task,
                                                      CodeRunner* runner, TaskCode* code = nullptr,
                                                      MathComparer* math = nullptr);
std::unique_ptr<ProcessResults> MakeLikelihoodResults(const TaskDefinition& task);
std::unique_ptr<ProcessResults> MakeRollingResults(const TaskDefinition& task);
std::unique_ptr<ProcessResults> MakeMultipleChoiceResults(const TaskDefinition& task);

/// Throws Error(kInput): the scores of a document exceed kScoreBytesMax.
[[noreturn]] void ThrowTooLongScore();

/// For the output types that give a value to each metric by its name.
struct UsedMetrics {
  std::vector<const Metric*> in_order;  ///< each once, in the harness's order; all have a value
  std::vector<std::string> names;       ///< in the order of metric_list
};

/// Throws Error(kInput) for a metric that is unknown, or not served for the task's output type.
UsedMetrics UsedMetricsOf(const TaskDefinition& task);

}  // namespace evald

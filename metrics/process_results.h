#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/task.h"
#include "metrics/sandbox/sandbox.h"
#include "prepared/prepared_task.h"

namespace evald {

/// The metrics of one document under one filter, as ConfigurableTask.process_results of lm_eval
/// 0.4.13 (api/task.py) makes them from the filtered responses of its requests.
class ProcessResults {
 public:
  virtual ~ProcessResults() = default;

  /// How many requests a document has.
  virtual size_t Requests(const PreparedDocument&) const { return 1; }

  /// Throws Error(kInput) for a document whose target or choices Run refuses whatever the answer
  /// is, so that this is known before an answer is computed. A document that passes may still be
  /// refused for its answer.
  virtual void Check(const PreparedDocument&) const {}

  /// The names that Run gives a number or a value to aggregate, whatever the documents are. A
  /// document may lack one: pass@8 of four programs.
  virtual std::vector<std::string> Metrics() const = 0;

  /// `filtered` holds one value per request, in order of idx. Returns metric name -> value, in the
  /// harness's order. Appends to `detail` what a code metric has to tell. Throws AnswerError
  /// (metrics/filters.h) or RegexGivenUp for an answer that cannot be scored, Error(kInput) where
  /// the harness raises.
  virtual Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
                   Json* detail) const = 0;
};

/// Chosen by the task's output_type. Throws Error(kInput) for a metric, an argument or a function
/// that is not known or not served, naming the nearest known.
std::unique_ptr<ProcessResults> MakeProcessResults(const TaskDefinition& task, CodeRunner* runner);

/// The parts of MakeProcessResults: score_generation.cc and score_likelihood.cc.
std::unique_ptr<ProcessResults> MakeGenerationResults(const TaskDefinition& task,
                                                      CodeRunner* runner);
std::unique_ptr<ProcessResults> MakeLikelihoodResults(const TaskDefinition& task);
std::unique_ptr<ProcessResults> MakeRollingResults(const TaskDefinition& task);
std::unique_ptr<ProcessResults> MakeMultipleChoiceResults(const TaskDefinition& task);

/// Throws Error(kInput): `metric` is not among `served` for this output type.
[[noreturn]] void RefuseMetric(const std::string& metric, const std::string& output_type,
                               const std::vector<std::string>& served);

}  // namespace evald

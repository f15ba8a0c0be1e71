#include "metrics/own_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "metrics/own_filters.h"
#include "metrics/scoring/aggregations.h"

namespace evald {
namespace {

TaskCode::MetricStep::Takes TakesOf(const MetricSpec& spec) {
  using Takes = TaskCode::MetricStep::Takes;
  if (!OwnAggregation(spec.aggregation).empty()) return Takes::kFunction;
  return TakesNumbers(spec.aggregation) ? Takes::kNumber : Takes::kAny;
}

// The harness keeps one function under each name.
void RequireOneOfItsName(const TaskDefinition& task, const MetricSpec& spec) {
  const auto count =
      std::count_if(task.metrics.begin(), task.metrics.end(),
                    [&](const MetricSpec& other) { return other.metric == spec.metric; });
  if (count == 1) return;
  throw Error(ErrorKind::kInput,
              fmt::format("metric_list has {} metrics with the name '{}', of which one is the "
                          "function '{}'",
                          count, spec.metric, spec.function),
              "give the function another name");
}

// Such a metric starts programs, which task code may not; the harness lets it.
void RefusePrograms(const TaskDefinition& task, const MetricSpec& spec) {
  if (!task.unsafe_code) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("the metric '{}' is the function '{}' of a task with 'unsafe_code: true': "
                  "the function runs the model's code, and task code may start no program",
                  spec.metric, spec.function),
      "served for such tasks are the metrics humaneval/utils.pass_at_k and "
      "mbpp/utils.pass_at_1, which run programs in a sandbox");
}

}  // namespace

bool IsOwnMetric(const TaskDefinition& task, const MetricSpec& spec) {
  return UsesTaskCode(task) && task.process_results.empty() &&
         task.output_type == "generate_until" && IsOwnFunction(spec.function);
}

OwnScorer MakeOwnMetric(const TaskDefinition& task, const MetricSpec& spec, TaskCode* code) {
  RequireOneOfItsName(task, spec);
  RefusePrograms(task, spec);
  RefuseFunctionsIn(spec.kwargs, fmt::format("the metric '{}'", spec.metric));
  const TaskCode::MetricStep step{.name = spec.metric,
                                  .settings = spec.kwargs,
                                  .several = task.multiple_target,
                                  .takes = TakesOf(spec)};
  return [step, code, function = spec.function, aggregation = spec.aggregation](
             const TextAnswer& answer, Json* metrics, Json* python) {
    if (code == nullptr)
      throw Error(ErrorKind::kInternal, "no process runs the functions of the task");
    Json value = code->Metric(function, step, answer.gold, answer.result);
    if (step.takes == TaskCode::MetricStep::Takes::kAny) {
      try {
        Aggregate(aggregation, {&value[0]}, 0);
      } catch (Error& e) {
        throw e.AddContext(fmt::format("metric '{}', the function '{}'", step.name, function));
      }
    }
    if (value.size() > 1) (*python)[step.name] = std::move(value[1]);
    (*metrics)[step.name] = Json(std::move(value[0]));
  };
}

}  // namespace evald

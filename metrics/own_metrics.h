#pragma once

#include <functional>

#include "evald/json.h"
#include "evald/task.h"
#include "metrics/scoring/metric.h"
#include "task_code/task_code.h"

// Metrics that are a task's own Python (docs/task-code.md, "Metrics").
namespace evald {

/// Whether the metric is a function of the task's own, which runs.
bool IsOwnMetric(const TaskDefinition& task, const MetricSpec& spec);

/// Adds the metric's value to `metrics`, and to `python` the text from which the task's functions
/// make it, if JSON cannot hold it and a function of the task's own gets it.
using OwnScorer = std::function<void(const TextAnswer& answer, Json* metrics, Json* python)>;

/// `code` is null if nothing will be scored. Throws Error(kInput) for a metric that the harness
/// would mix up with another one of the task. The scorer throws Error(kInput) if the function
/// throws, or gives what its aggregation does not take.
OwnScorer MakeOwnMetric(const TaskDefinition& task, const MetricSpec& spec, TaskCode* code);

}  // namespace evald

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"

namespace evald {

class OwnAggregations;

/// The task's entry in the harness's `results`: {"name", "alias", "sample_len",
/// "<metric>,<filter>": value, "<metric>_stderr,<filter>": value or "N/A", ...}. `scores` is in
/// order of doc_id. Numbers equal the harness's bit for bit (including its order of summation).
/// `bootstrap_iters` is that of the harness; 0 means no standard errors. Throws
/// Error(kInfrastructure) soon after `stopped` has become true. `stopped` may be null, and is
/// called from several threads. `own` has the values for the task's own aggregations; it may be
/// null if the task has none.
Json AggregateTask(const TaskDefinition& task, const std::vector<ScoredDocument>& scores,
                   int bootstrap_iters = 100000, const std::function<bool()>& stopped = nullptr,
                   OwnAggregations* own = nullptr);

/// The aggregation of one of the task's metrics. A metric such as pass@1 takes that of the function
/// that made it.
std::string AggregationFor(const TaskDefinition& task, const std::string& metric);

/// Leaves null in place of the values that are texts (TakesTexts). Returns their bytes.
uint64_t DropTexts(const TaskDefinition& task, ScoredDocument* score);

/// The number of draws for the task's bootstrapped standard errors, to which their time is
/// proportional. Each iteration draws every document anew, for each metric and filter.
double BootstrapDraws(const TaskDefinition& task, int64_t documents, int bootstrap_iters);

/// The entries of groups, bottom-up, from the tasks' entries in `results` (an object by name).
/// Returns an object by group name.
Json AggregateGroups(const std::vector<GroupDefinition>& groups, const Json& results);

}  // namespace evald

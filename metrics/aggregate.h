#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"

namespace evald {

/// The task's entry in the harness's `results`: {"name", "alias", "sample_len",
/// "<metric>,<filter>": value, "<metric>_stderr,<filter>": value or "N/A", ...}. `scores` in order
/// of doc_id. Numbers come out bit for bit as the harness computes them (its order of summation
/// included). `bootstrap_iters` as there; 0 means no standard errors. Throws Error(kInfrastructure)
/// soon after `stopped` has begun to be true; it may be null, and is asked from several threads.
Json AggregateTask(const TaskDefinition& task, const std::vector<ScoredDocument>& scores,
                   int bootstrap_iters = 100000, const std::function<bool()>& stopped = nullptr);

/// How many draws the task's standard errors take that are bootstrapped: each iteration draws every
/// document anew, for each metric and filter. Their time grows with this.
double BootstrapDraws(const TaskDefinition& task, int64_t documents, int bootstrap_iters);

/// The entries of groups, bottom-up, from the tasks' entries in `results` (an object by name).
/// Returns an object by group name.
Json AggregateGroups(const std::vector<GroupDefinition>& groups, const Json& results);

}  // namespace evald

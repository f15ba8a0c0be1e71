#pragma once

#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"

namespace evald {

/// The task's entry in the harness's `results`: {"name", "alias", "sample_len",
/// "<metric>,<filter>": value, "<metric>_stderr,<filter>": value or "N/A", ...}. `scores` in order
/// of doc_id. Numbers come out bit for bit as the harness computes them (its order of summation
/// included). `bootstrap_iters` as there; 0 means no standard errors.
Json AggregateTask(const TaskDefinition& task, const std::vector<ScoredDocument>& scores,
                   int bootstrap_iters = 100000);

/// The entries of groups, bottom-up, from the tasks' entries in `results` (an object by name).
/// Returns an object by group name.
Json AggregateGroups(const std::vector<GroupDefinition>& groups, const Json& results);

}  // namespace evald

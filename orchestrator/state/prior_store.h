#pragma once

#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/schedule/prior.h"
#include "orchestrator/state/database.h"

namespace evald::prior_store {

/// The number of runs whose costs are kept for each task and place, the newest ones.
inline constexpr int kRunsKept = 8;

// Costs that runs measured, in the table that RunStore makes. Only the database thread may call the
// functions that write.

void Add(Database& database, const TaskCost& cost);
/// All costs that are kept, the newest first.
std::vector<TaskCost> All(Database& database);

/// {"schema": "evald-priors/1", "costs": [...]}: docs/formats.md.
Json ToJson(const std::vector<TaskCost>& costs);
/// Throws Error(kInput) "<where>: costs[3]: ..." for JSON of another form.
std::vector<TaskCost> FromJson(const Json& json, const std::string& where);

}  // namespace evald::prior_store

#pragma once

#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/schedule/prior.h"
#include "orchestrator/state/database.h"

namespace evald::prior_store {

/// Of each task at each place the newest so many runs are kept.
inline constexpr int kRunsKept = 8;

// Costs that runs measured, in the table that RunStore makes. Writing ones belong to the database
// thread.

void Add(Database& database, const TaskCost& cost);
/// All that are kept, the newest first.
std::vector<TaskCost> All(Database& database);

/// {"schema": "evald-priors/1", "costs": [...]}: docs/formats.md.
Json ToJson(const std::vector<TaskCost>& costs);
/// Throws Error(kInput) "<where>: costs[3]: ..." for what is not of that form.
std::vector<TaskCost> FromJson(const Json& json, const std::string& where);

}  // namespace evald::prior_store

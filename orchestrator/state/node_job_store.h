#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/state/database.h"

namespace evald {

/// A job of a launcher, as the database keeps it.
struct NodeJobRow {
  std::string launcher;    ///< its name
  int64_t number = 0;      ///< of the job, among those of the launcher
  std::string token_hash;  ///< hexadecimal SHA-256 of its agent's token
  std::string record;      ///< JSON
};

/// The jobs that a service's launchers run, in the tables that RunStore makes. Only the database
/// thread may call the functions that write.
namespace node_job_store {

/// Names the database: eight hexadecimal digits, made with it. A database that takes the place of a
/// lost one has another name, and so have the jobs that are recorded in it.
std::string Identity(Database& database);
/// Adds the job, or replaces it.
void Save(Database& database, const NodeJobRow& row);
void Remove(Database& database, const std::string& launcher, int64_t number);
/// The jobs of a launcher, by number.
std::vector<NodeJobRow> List(Database& database, const std::string& launcher);

/// Why each node is excluded that a launcher is not to use, by its name.
using ExcludedNodes = std::map<std::string, std::string>;
/// Replaces those that are recorded.
void SaveExcluded(Database& database, const std::string& launcher, const ExcludedNodes& nodes);
ExcludedNodes Excluded(Database& database, const std::string& launcher);

}  // namespace node_job_store
}  // namespace evald

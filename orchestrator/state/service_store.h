#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/state/database.h"

namespace evald {

/// A run as the database keeps it for the service.
struct RunRow {
  int64_t number = 0;  ///< grows with each run; names it on the wire
  std::string run;     ///< its id
  std::string output;  ///< its folder
  double created = 0;  ///< seconds since 1970
  std::string state;
  std::string name;  ///< of the model
  std::string user;
  int priority = 0;
  std::string checkpoint;
  std::string submission;  ///< JSON; what it is started from again
  std::string idempotency_key;
  std::string resource;  ///< JSON; the last Run resource
};

/// A filter over runs; empty members match all.
struct RunQuery {
  std::string state;
  std::string user;
  std::string name;
  std::string checkpoint;
  int64_t before = INT64_MAX;  ///< numbers below this one
  int limit = 50;
};

struct EventRow {
  int64_t sequence = 0;
  std::string run;
  std::string type;
  std::string data;
};

/// A watch that was registered with the service.
struct WatchRow {
  std::string watch;       ///< its id
  double created = 0;      ///< seconds since 1970
  std::string definition;  ///< JSON
};

/// The queue of runs, the events and the watches of a service, in the tables that RunStore makes.
/// Each function works on the connection it is given; writing ones belong to the database thread.
namespace service_store {

/// Adds a run and gives its number.
int64_t AddRun(Database& database, const RunRow& row);
std::optional<RunRow> FindRun(Database& database, const std::string& run);
std::optional<RunRow> FindByKey(Database& database, const std::string& user,
                                const std::string& key);
void UpdateRun(Database& database, const std::string& run, const std::string& state, int priority,
               const std::string& resource);
/// Runs that were submitted and are not over, oldest first.
std::vector<RunRow> Unfinished(Database& database);
/// Submitted runs, newest first.
std::vector<RunRow> ListRuns(Database& database, const RunQuery& query);

/// Folders of all runs.
std::set<std::string> Outputs(Database& database);

int64_t LastEvent(Database& database);
/// Numbers events from after `sequence`: of a database that was lost it is not known how far they
/// came.
void SkipEvents(Database& database, int64_t sequence);
/// Of events "run.progress" only the newest of each run is kept.
void AddEvent(Database& database, const EventRow& event);
/// Events after `sequence`, of one run or ("") of all, oldest first.
std::vector<EventRow> EventsAfter(Database& database, const std::string& run, int64_t sequence,
                                  int limit);

/// Adds a watch; one that is there stays as it is.
void AddWatch(Database& database, const WatchRow& row);
void RemoveWatch(Database& database, const std::string& watch);
/// All, oldest first.
std::vector<WatchRow> ListWatches(Database& database);

}  // namespace service_store
}  // namespace evald

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
  int64_t number = 0;  ///< grows with each run; messages name the run by it
  std::string run;     ///< its id
  std::string output;  ///< its folder
  double created = 0;  ///< seconds since 1970
  std::string state;
  std::string name;  ///< the model's name
  std::string user;
  int priority = 0;
  std::string checkpoint;
  std::string submission;  ///< JSON; the run is started again from it
  std::string idempotency_key;
  std::string resource;  ///< JSON; the last Run resource
};

/// A filter of runs. An empty member matches all.
struct RunQuery {
  std::string state;
  std::string user;
  std::string name;
  std::string checkpoint;
  int64_t before = INT64_MAX;  ///< only numbers below this one
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
/// Each function works on the given connection. Only the database thread may call the functions
/// that write.
namespace service_store {

/// Adds a run. Returns its number.
int64_t AddRun(Database& database, const RunRow& row);
std::optional<RunRow> FindRun(Database& database, const std::string& run);
/// The row without its submission, which may be long.
std::optional<RunRow> ShowRun(Database& database, const std::string& run);
std::optional<RunRow> FindByKey(Database& database, const std::string& user,
                                const std::string& key);
void UpdateRun(Database& database, const std::string& run, const std::string& state, int priority,
               const std::string& resource);
/// Runs that were submitted and are not over, oldest first.
std::vector<RunRow> Unfinished(Database& database);
/// Submitted runs without their submissions, newest first.
std::vector<RunRow> ListRuns(Database& database, const RunQuery& query);

/// The user's runs that are over without a result and without a document that counts, beyond the
/// newest `kept` of them. At most `limit`, newest first, without their submissions.
std::vector<RunRow> UnusedRuns(Database& database, const std::string& user, int kept, int limit);
/// Removes a run, with its events and all that is known of its files.
void RemoveRun(Database& database, const std::string& run);

/// The folders of all runs.
std::set<std::string> Outputs(Database& database);

int64_t LastEvent(Database& database);
/// The next event gets a number greater than `sequence`. If the database was lost, the last number
/// given is unknown.
void SkipEvents(Database& database, int64_t sequence);
/// The events of one run (and of no run, "") that are kept.
inline constexpr int64_t kEventsKept = 10'000;

/// Adds an event. A new "run.progress" replaces the older one of its run. Now and then it removes
/// the run's events beyond the newest `kept`. An event "events.lost" takes the place of the newest
/// one that was removed, so that a reader whose cursor is older learns of it.
void AddEvent(Database& database, const EventRow& event, int64_t kept = kEventsKept);
/// Events after `sequence`, of one run or ("") of all, oldest first.
std::vector<EventRow> EventsAfter(Database& database, const std::string& run, int64_t sequence,
                                  int limit);

/// Adds a watch. A watch that exists stays unchanged.
void AddWatch(Database& database, const WatchRow& row);
void RemoveWatch(Database& database, const std::string& watch);
/// All watches, oldest first.
std::vector<WatchRow> ListWatches(Database& database);

}  // namespace service_store
}  // namespace evald

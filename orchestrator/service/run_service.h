#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/fleet/loop_turns.h"

namespace evald {

/// A request to evaluate a checkpoint.
struct Submission {
  std::string yaml;              ///< the text of an eval.yaml; JSON is YAML too
  std::filesystem::path base;    ///< folder that relative paths in it start from
  std::vector<std::string> set;  ///< "key.path=value" overrides
  std::string user;              ///< whose share of the devices it counts against; "" is nobody's
  int priority = 0;              ///< -100 to 100; higher goes first
  std::string idempotency_key;   ///< a second submission with this key and user is the first one
  /// The second one may say something else: its key names what is evaluated and by what, as a
  /// watch's does. Else it is refused where it does.
  bool key_decides = false;
};

/// What became of a submission.
struct Submitted {
  Json run;             ///< the Run resource
  bool created = true;  ///< false: the idempotency key was known, for the same submission
};

/// Nothing was done: a user, or all together, has as much of something as the service's
/// configuration allows.
struct OverQuota {
  std::string what;     ///< "runs", "judging" or "watches"
  std::string message;  ///< who has how many, and how many are allowed
  std::string remedy;
};
/// Why nothing was done.
using Refusal = std::variant<Error, OverQuota>;
/// What is asked for, or why there is none.
template <typename T>
using Answer = std::variant<T, Error, OverQuota>;

/// Something that happened, for followers. `sequence` grows without gaps per service, over restarts
/// too; a follower that saw n asks for what came after n.
struct Event {
  int64_t sequence = 0;
  std::string run;   ///< "" when it concerns no run
  std::string type;  ///< "run.state", "run.progress", "task.done", "worker", "checkpoint", ...
  std::string data;  ///< one line of JSON
};

/// The service at one moment: plain JSON resources as the REST interface shows them (the shapes are
/// in docs/openapi.json). Immutable, replaced as a whole.
struct ServiceView {
  int64_t sequence = 0;                     ///< of the last event that it contains
  std::map<std::string, Json> active_runs;  ///< Run resources of runs that are not over, by id
  std::vector<std::string> queue;          ///< ids of those that wait, in the order they will start
  Json workers = Json::array();            ///< Worker resources
  Json hosts = Json::array();              ///< Host resources, with their devices
  Json refused = Json::array();            ///< AgentRefusal resources: agents that may not join
  Json staged = Json::array();             ///< StagedCheckpoint resources
  std::map<std::string, double> counters;  ///< monotonic, for /metrics: "generated_documents_total"
  LoopTurns loop_turns;                    ///< of the service's loop
  bool ready = false;                      ///< takes runs: the database is open, it is not draining
};

/// kResume lets a paused run go on. One that has ended without its results (incomplete, failed,
/// cancelled) it puts into the queue again: what is committed counts, the rest is done. One that is
/// about to end is resumed once it has: the answer waits for that. The last action counts: kCancel
/// refuses resumes that wait.
enum class RunAction { kCancel, kPause, kResume };

/// A filter over runs; empty members match all.
struct RunFilter {
  std::string state;
  std::string user;
  std::string name;        ///< of the model
  std::string checkpoint;  ///< path
  int64_t before = 0;      ///< a cursor: runs with a smaller row number; 0 starts at the newest
  int limit = 50;
};
struct RunPage {
  std::vector<Json> runs;  ///< Run resources, newest first
  int64_t next = 0;        ///< cursor of the next page; 0 at the end
};

/// What the REST interface may ask of the service. Every method may be called from any thread and
/// returns at once or after a short read of the database; `done` callbacks run on the service's
/// thread and must not block. Errors come as Error: kUsage for what the caller did wrong (unknown
/// run, wrong state), kInput for a bad eval.yaml. OverQuota comes for a submission or a resume
/// beyond a quota.
class RunService {
 public:
  template <typename T>
  using Done = std::function<void(Answer<T>)>;

  virtual ~RunService() = default;

  /// Checks the user's quota, has the submission judged when it is the user's turn, and queues the
  /// run.
  virtual void Submit(Submission submission, Done<Submitted> done) = 0;
  virtual void Act(const std::string& run, RunAction action,
                   Done<Json> done) = 0;  ///< Run resource
  virtual void SetPriority(const std::string& run, int priority, Done<Json> done) = 0;
  /// A training run says that a checkpoint is complete: the watches whose folder holds it look at
  /// once, and submit it if it is new to them. The answer is a CheckpointAnnouncement resource; its
  /// runs are those that this checkpoint had before. kUsage when no watch covers the folder.
  /// Where the folder has another name than the watch's, it is looked at when it is the turn of
  /// `user`.
  virtual void Announce(const std::filesystem::path& checkpoint, const std::string& user,
                        Done<Json> done) = 0;

  virtual std::shared_ptr<const ServiceView> View() const = 0;
  /// Active and past runs.
  virtual RunPage Runs(const RunFilter& filter) const = 0;
  /// The Run resource; nothing for an unknown id.
  virtual std::optional<Json> Run(const std::string& run) const = 0;
  /// The run's folder (docs/formats.md), to read results, samples and timeline from.
  virtual std::optional<std::filesystem::path> Directory(const std::string& run) const = 0;

  /// Events after `sequence`, of one run or of all ("" ), at most `limit`, from memory or the
  /// database.
  virtual std::vector<Event> EventsAfter(const std::string& run, int64_t sequence,
                                         int limit) const = 0;
  /// Calls `listener` on the service's thread whenever there are new events; it must not block.
  /// Returns a token; dropping it ends the subscription.
  virtual std::shared_ptr<void> OnEvents(std::function<void()> listener) = 0;
};

}  // namespace evald

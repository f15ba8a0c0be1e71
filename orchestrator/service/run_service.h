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
#include "orchestrator/run/samples_so_far.h"
#include "orchestrator/service/run_labels.h"

namespace evald {

/// A request to evaluate a checkpoint.
struct Submission {
  std::string yaml;              ///< the text of an eval.yaml, or JSON
  std::filesystem::path base;    ///< folder that its relative paths start from
  std::vector<std::string> set;  ///< "key.path=value" overrides
  std::string file;              ///< the name of the eval.yaml in messages; "": as it seems fit
  /// The user whose share of the devices the run counts against; "": nobody
  std::string user;
  int priority = 0;             ///< -100 to 100; higher goes first
  std::string idempotency_key;  ///< a second submission with this key and user is the same run
  /// Whether a second submission with the key may have another text. Set if the key itself names
  /// what is evaluated and with what, as a watch's key does. Otherwise such a submission is
  /// refused.
  bool key_decides = false;
};

/// The answer to a submission.
struct Submitted {
  Json run;             ///< the Run resource
  bool created = true;  ///< false: the same submission was known by its key
};

/// The request was refused: a user, or all users together, have as many of something as the
/// configuration allows.
struct OverQuota {
  std::string what;     ///< "runs", "judging", "paused" or "watches"
  std::string message;  ///< the user, the number there are, and the number allowed
  std::string remedy;
};
/// Why a request was refused.
using Refusal = std::variant<Error, OverQuota>;
/// The answer to a request, or why it was refused.
template <typename T>
using Answer = std::variant<T, Error, OverQuota>;

/// An event for followers. `sequence` grows without gaps for each service, over restarts too. A
/// follower that saw n asks for the events after n.
struct Event {
  int64_t sequence = 0;
  std::string run;   ///< "" if it concerns no run
  std::string type;  ///< "run.state", "run.progress", "task.done", "worker", "checkpoint", ...
  std::string data;  ///< one line of JSON
};

/// The service at one moment: plain JSON resources as the REST interface shows them (their shapes
/// are in docs/openapi.json). Immutable; replaced as a whole.
struct ServiceView {
  int64_t sequence = 0;  ///< the last event that the view contains
  /// Run resources of runs that are not over, by id. Views share those that have not changed.
  std::map<std::string, std::shared_ptr<const Json>> active_runs;
  /// Ids of the waiting runs, in the order in which they will start
  std::vector<std::string> queue;
  Json workers = Json::array();            ///< Worker resources
  Json hosts = Json::array();              ///< Host resources, with their devices
  Json launchers = Json::array();          ///< Launcher resources
  Json refused = Json::array();            ///< AgentRefusal resources: agents that may not join
  Json staged = Json::array();             ///< StagedCheckpoint resources
  std::map<std::string, double> counters;  ///< monotonic, for /metrics: "generated_documents_total"
  LoopTurns loop_turns;                    ///< of the service's loop
  /// Runs are taken: the database is open, and the service is not draining
  bool ready = false;
};

/// kResume lets a paused run go on. A run that ended without results (incomplete, failed,
/// cancelled) goes back into the queue: what is committed counts, the rest is done. A run that is
/// about to end is resumed once it has ended, and the answer comes then. The last action counts:
/// kCancel refuses resumes that wait.
enum class RunAction { kCancel, kPause, kResume };

/// A filter over runs; empty members match all.
struct RunFilter {
  std::string state;
  std::string user;
  std::string name;        ///< name of the model
  std::string checkpoint;  ///< path of the checkpoint
  int64_t before = 0;      ///< a cursor: runs with a smaller row number; 0 starts at the newest
  int limit = 50;
};
struct RunPage {
  std::vector<Json> runs;  ///< Run resources, newest first
  int64_t next = 0;        ///< cursor of the next page; 0 at the end
};

/// The service as the REST interface sees it. Every method may be called from any thread. It
/// returns at once or after a short read of the database. `done` callbacks run on the service's
/// thread and must not block. Errors are Error: kUsage for mistakes of the caller (unknown run,
/// wrong state), kInput for a bad eval.yaml. A submission or a resume beyond a quota is answered
/// with OverQuota.
class RunService {
 public:
  template <typename T>
  using Done = std::function<void(Answer<T>)>;

  virtual ~RunService() = default;

  /// Checks the user's quota, has the submission judged when the user's turn comes, and queues the
  /// run.
  virtual void Submit(Submission submission, Done<Submitted> done) = 0;
  /// Run resource
  virtual void Act(const std::string& run, RunAction action, Done<Json> done) = 0;
  virtual void SetPriority(const std::string& run, int priority, Done<Json> done) = 0;
  /// The timeline so far of a run that is at work (Trace Event Format). kUsage for any other run.
  virtual void Timeline(const std::string& run, Done<Json> done) = 0;
  /// The samples of those documents of a task that are scored. Without `renew`, those made last
  /// will do. Null if nothing of the task is scored, and for a run that is not at work.
  virtual void Samples(const std::string& run, const std::string& task, bool renew,
                       Done<std::shared_ptr<const SamplesSoFar>> done) = 0;
  /// Changes what people wrote about a run, which may be over.
  virtual void SetLabels(const std::string& run, LabelChange change, Done<Json> done) = 0;
  /// A training run says that a checkpoint is complete. The watches whose folder holds it look at
  /// once, and submit the checkpoint if it is new to them. The answer is a CheckpointAnnouncement
  /// resource with the runs that this checkpoint already had. kUsage if no watch covers the folder.
  /// A folder with another name than the watch's is compared when the turn of `user` comes.
  virtual void Announce(const std::filesystem::path& checkpoint, const std::string& user,
                        Done<Json> done) = 0;

  /// A node that was excluded after failing is asked for again. Answers with the Launcher resource;
  /// kUsage if the launcher is unknown or does not exclude the node.
  virtual void ReleaseNode(const std::string& launcher, const std::string& node,
                           Done<Json> done) = 0;

  virtual std::shared_ptr<const ServiceView> View() const = 0;
  /// Active and past runs.
  virtual RunPage Runs(const RunFilter& filter) const = 0;
  /// The Run resource; nothing for an unknown id.
  virtual std::optional<Json> Run(const std::string& run) const = 0;
  /// The run's folder (docs/formats.md) with its results, samples and timeline.
  virtual std::optional<std::filesystem::path> Directory(const std::string& run) const = 0;

  /// At most `limit` events after `sequence`, of one run or of all (""), from memory or the
  /// database.
  virtual std::vector<Event> EventsAfter(const std::string& run, int64_t sequence,
                                         int limit) const = 0;
  /// Calls `listener` on the service's thread when there are new events. It must not block. The
  /// subscription ends when the returned token is dropped.
  virtual std::shared_ptr<void> OnEvents(std::function<void()> listener) = 0;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/launch/node_job.h"
#include "orchestrator/launch/nodes_wanted.h"

namespace evald {

/// The bounds of one launcher. Times in seconds.
struct LaunchLimits {
  std::string prefix;  ///< of the names of its jobs; names this service and this launcher
  int nodes_min = 0;
  int nodes_max = 1;
  int pending_max = 8;            ///< jobs that wait in the launcher's queue at once
  double node_hours_per_day = 0;  ///< beyond these nothing is submitted; 0: no bound
  double start_s = 60;            ///< guess of NodeCosts::start_s, until jobs have shown it
  double useful_s = 60;           ///< NodeCosts::useful_s
  double idle_s = 300;            ///< a node without work for so long goes back
  double list_every_s = 30;       ///< between two questions to the launcher
  double retry_s = 60;            ///< first pause after a failure; each further one doubles it
  /// From the start of a job until its agent has come
  double agent_patience_s = 120;
  /// A job that the launcher does not list counts as lost after this
  double unlisted_patience_s = 180;
};

/// Decides which jobs a launcher is asked to run: how many nodes there are to be, which go back,
/// and what became of a job whose fate nobody has told. A plain value: events and the time (seconds
/// since 1970, never less than before) go in, orders come out. No clock, no I/O.
///
/// A job is never submitted twice. It is recorded before it is submitted, under a name of its own;
/// if the answer to the submission is lost, the launcher's list tells. A job that the list does not
/// show is unknown: only after `unlisted_patience_s`, and while its agent is not connected, it
/// counts as lost, and the launcher is told to end whatever bears its name.
class LaunchMachine {
 public:
  explicit LaunchMachine(LaunchLimits limits)
      : limits_(std::move(limits)),
        costs_{.start_s = limits_.start_s, .useful_s = limits_.useful_s} {}

  // ---- events
  /// The jobs, and why each excluded node is excluded, as an earlier process recorded them. Before
  /// all other events.
  void Restored(const std::vector<NodeJob>& jobs, std::map<std::string, std::string> excluded,
                double now);
  /// The launcher's list, asked for at `asked_at`.
  void Listed(const std::vector<ListedJob>& jobs, double asked_at, double now);
  void ListFailed(const std::string& why, double now);
  void Submitted(int64_t number, const SubmitAnswer& answer, double now);
  /// The launcher could not be told to end the job. It is told again later.
  void StopFailed(int64_t number, const std::string& why, double now);
  /// What the fleet knows of the job's host. Call it after each change.
  void HostIs(int64_t number, const NodeHost& host, double now);
  /// The end of the log of a job whose agent did not come (order kReadLog).
  void LogEnds(int64_t number, const std::string& last_lines);
  /// Nodes that were excluded are asked for again.
  void Release(const std::string& node);
  /// All jobs go back, and none is submitted any more.
  void StopAll(double now);
  /// Call it every few seconds.
  void Tick(const NodeDemand& demand, double now);

  // ---- orders
  struct Order {
    enum class Kind {
      kSubmit,   ///< record the job, then submit it, then call Submitted
      kStop,     ///< record the job, then end what bears its name or id; StopFailed if that fails
      kStopJob,  ///< end the job with this id, which is nobody's
      kList,     ///< call Listed or ListFailed
      kSave,     ///< record the job
      kForget,   ///< remove the job's record
      kReadLog,  ///< call LogEnds, if the log can be read
      kExclude,  ///< tell the launcher which nodes the job, which waits, is not to use: excluded()
    };
    Kind kind;
    NodeJob job = {};  ///< as it is to be recorded; of kStopJob only its id, of kList nothing
  };
  std::vector<Order> TakeOrders() { return std::exchange(orders_, {}); }

  // ---- looking
  struct Job {
    NodeJob record;
    ListedJob listed;  ///< as last listed; its `job` is "" before that
    NodeHost host;
    bool agent_came = false;  ///< since the job last started
    bool failed = false;      ///< its agent did not come, or could compute nothing

    bool submitting = false;    ///< no answer to its submission yet
    double answered_at = 0;     ///< when that answer came
    double missing_since = 0;   ///< 0: it is listed
    double over_since = 0;      ///< 0: the launcher does not say that it is over
    int missed = 0;             ///< lists in a row without it
    double idle_since = 0;      ///< 0: its host is busy, or not there
    double broken_since = 0;    ///< 0: its host can compute, or is not there
    double stop_asked_at = 0;   ///< 0: not asked
    std::string stop_failure;   ///< why it was not told to end the last time; "" if it was
    double agent_due_from = 0;  ///< since when its agent is awaited
  };
  /// By number; jobs that are over stay for a day, for the node hours.
  const std::map<int64_t, Job>& jobs() const { return jobs_; }
  const Job* Find(int64_t number) const;
  /// Sentences for people about what goes wrong now.
  std::vector<std::string> Problems(double now) const;
  /// Why each excluded node is excluded, by its name.
  const std::map<std::string, std::string>& excluded() const { return excluded_; }
  int target() const { return target_; }
  /// Node hours used in the last day.
  double NodeHours(double now) const;
  const NodeCosts& costs() const { return costs_; }
  /// When the next job may be submitted; not in the future if nothing failed.
  double next_try_at() const { return try_at_; }
  /// Whether a node that is not there may come: one is asked for, or would be but for a pause.
  bool MoreMayCome(double now) const;
  /// Why no node is to be hoped for: none has ever come, and the launcher refuses the jobs, or all
  /// of the first have failed. "" if there is hope. For a run that waits for its first node.
  std::string Hopeless() const;

 private:
  bool Lives(const Job& job) const;
  int Count(bool pending_only) const;
  int Here() const;
  void Begin(double now);
  void Stop(Job* job, const std::string& why, double now);
  void End(Job* job, const std::string& why, double now);
  void NoteFailure(Job* job, const std::string& why, double now, bool at_fault = true);
  void Silent(const std::string& why, double now);
  std::string NotCome(const Job& job, const std::string& otherwise) const;
  void ExcludeAnew();
  void BackOff(const std::string& why, double now);
  void StopNobodys(const NodeJob& job, double now);
  void OnListed(Job* job, const ListedJob& listed, double now);
  void OnMissing(Job* job, double now);
  void OnAgentCame(Job* job, double now);
  void AwaitAgents(double now);
  void ReturnBroken(double now);
  void StopAgain(double now);
  void StopOnceMore(Job* job, double now);
  void ReturnIdle(double now);
  void ReturnSurplus(double now);
  void SubmitMissing(double now);
  void ForgetOld(double now);
  Job* ByName(const std::string& name);
  void Push(Order::Kind kind, const NodeJob& job = {}) { orders_.push_back({kind, job}); }

  LaunchLimits limits_;
  std::map<int64_t, Job> jobs_;
  int64_t last_number_ = 0;
  NodeCosts costs_;
  int target_ = 0;
  bool stopped_ = false;
  bool listing_ = false;
  double list_at_ = 0;       // not before
  double silent_since_ = 0;  // 0: the launcher answers
  std::string silence_;      // the last error
  double surplus_since_ = 0;
  // Failures of submissions and agents: the time of the next try, doubled with each.
  double try_at_ = 0;
  double pause_s_ = 0;
  std::string failure_;
  bool came_ = false;        // an agent, ever
  bool refused_ = false;     // a job, for a reason that does not pass
  int failed_ = 0;           // jobs whose agents failed
  double failed_at_ = -1e9;  // when the last of them did
  /// Jobs of nobody that the launcher was told to end in the last minute: when, by id
  std::map<std::string, double> nobodys_;
  struct Failures {
    int in_a_row = 0;
    bool here = false;  // the agent came and could compute nothing
    std::string last;
  };
  std::map<std::string, Failures> failures_;     // by node
  std::map<std::string, std::string> excluded_;  // by node
  std::vector<Order> orders_;
};

}  // namespace evald

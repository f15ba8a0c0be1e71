#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "evald/error.h"
#include "evald/request.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet_machine/orders.h"
#include "orchestrator/fleet_machine/run_view.h"
#include "orchestrator/prepare/preparation.h"
#include "orchestrator/report/progress.h"
#include "orchestrator/report/timeline.h"
#include "orchestrator/run/host_doubts.h"
#include "orchestrator/run/run_directory.h"
#include "orchestrator/run/run_json.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/run/run_results.h"
#include "orchestrator/run/samples_so_far.h"
#include "orchestrator/run/task_finisher.h"
#include "orchestrator/run/worker_profile.h"
#include "orchestrator/staging/stager.h"
#include "orchestrator/state/database_thread.h"
#include "protocol/messages.h"

namespace evald {

class ProcessNumbers;
class RunCosts;
class RunMachine;
struct CostPlace;
struct DocumentRange;
struct MetricJob;
struct Recovery;
struct RunEnding;
struct RunPlan;
struct ShortenOrder;
struct TaskCost;
struct TrialLease;

/// The news that the fleet tells a run.
using FleetNews =
    std::variant<order::TellRefused, order::TellWorkerLost, order::TellMetricProcessLost,
                 order::TellSetAside, order::TellDevices, order::TellNoWorkers,
                 order::TellNoMetricProcesses, order::TellNobodyElse, order::TellVain,
                 order::TellWaiting>;

/// One run: stages its checkpoint, prepares its tasks, offers its work, commits finished work, and
/// makes results. It starts no process and knows no socket and no fleet. A Fleet looks at its View,
/// asks it for trials and metric jobs, and passes on the messages of processes. All methods run on
/// the loop's thread, and none of them blocks. Staging and preparation have threads of their own.
/// The files thread writes the run's folder and makes the plan, in the order in which the
/// evaluation asks for it. A failure on one of these threads ends this run and no other.
///
///     stage ──► load on a worker ─┐
///     prepare ────────────────────┴─► recover ──► plan ──► lease ⇄ commit ⇄ score ──► over
class Evaluation : public std::enable_shared_from_this<Evaluation> {
 public:
  /// The services that an evaluation uses. They outlive it.
  struct Support {
    Loop* loop = nullptr;
    DatabaseThread* database = nullptr;
    TaskFinisher* finisher = nullptr;
    WorkThread* files = nullptr;     ///< writes the runs' folders
    std::filesystem::path binaries;  ///< folder of evald-prepare
    std::string user = {};           ///< the user whose run it is; "" if there are no users
  };
  struct Hooks {
    /// Called when View() has changed without a call from outside. No hook may call the evaluation.
    std::function<void()> changed;
    /// Called once: nothing more will happen, and TakeEnding may be called
    std::function<void()> over;
    /// An event for the clients of the event stream: "task.done" and its data.
    std::function<void(const std::string& type, const Json& data)> event;
    /// Names the host of a process. If it is null, all processes are the service's own.
    std::function<Witness(const std::string& process)> witness = nullptr;
  };

  /// `number` names the run in the database and on the wire. The plan sizes trials for
  /// `devices` devices.
  Evaluation(EvalConfig config, RunDirectory directory, int64_t number, int devices,
             Support support, Hooks hooks);
  ~Evaluation();

  /// Begins to stage and to prepare.
  void Start();

  int64_t number() const { return number_; }
  const std::string& id() const { return id_; }
  const EvalConfig& config() const { return config_; }

  // ---- for the fleet (evaluation_fleet.cc, evaluation_engine.cc, evaluation_messages.cc)
  /// The run as the fleet sees it, without user and priority, which the queue knows.
  RunView View(int64_t now) const;
  /// RunView::shortest_s, which View leaves out: it takes a step for each task, and only hosts that
  /// end need it.
  std::optional<double> shortest_s() const;
  WorkerProfile profile() const;
  /// The Load of the checkpoint, once View names it.
  protocol::Load load() const;
  /// The folder into which the checkpoint is being staged.
  protocol::Follow follow() const { return {followable_.folder}; }
  /// Adds a process of the fleet to the timeline.
  void AddRow(const std::string& process, const std::string& title, bool is_device);
  /// Leases a trial to `worker`. Nothing if there is none for it. `engine` describes the worker's
  /// engine, as its Loaded message gave it. The trial is expected to end before `until_us`, when
  /// the worker's host ends (CLOCK_MONOTONIC; 0: no limit).
  std::optional<protocol::Lease> LeaseTrial(const std::string& worker, const Json& engine,
                                            int64_t until_us = 0);
  struct StealOutcome {
    /// Messages to send to other workers: these give up documents, which the idle worker then gets
    std::vector<std::pair<std::string, protocol::Shorten>> shorten;
    /// If `shorten` is empty: work that is left for a slow worker, or a second lease of a trial
    /// with which another worker is late
    std::optional<protocol::Lease> lease;
  };
  /// Finds work for an idle worker that has this run's checkpoint and got no trial. `until_us` as
  /// in LeaseTrial.
  StealOutcome Steal(const std::string& worker, const Json& engine, int64_t until_us = 0);
  /// Leases a metric job to `metric process`. Nothing if there is none for it. `isolation` says how
  /// that process isolates code. If `made_by` is set, the job's generations come from a worker for
  /// which it returns true. `until_us` as in LeaseTrial.
  std::optional<protocol::Job> LeaseJob(
      const std::string& metric_process, const Json& isolation,
      const std::function<bool(const std::string& worker)>& made_by = {}, int64_t until_us = 0);
  /// Trials, each with its worker, that workers still hold although other workers have committed
  /// them. The caller revokes them.
  std::vector<std::pair<std::string, HeldTrial>> TakeRevoked();
  /// Takes a trial back from its worker, which TakeRevoked then names. `why` is for the log.
  void TakeBack(const std::string& worker, const HeldTrial& held, const std::string& why);
  /// The worker's host ends soon: returns messages to the worker that end the trial's slices after
  /// the documents that are begun.
  std::vector<protocol::Shorten> HandBack(const std::string& worker, const HeldTrial& held);
  /// Takes back the worker's trials of which no slice has come for too long; TakeRevoked then names
  /// them. The worker's host is doubted from now on.
  void TakeStalled(const std::string& worker);
  /// Takes all jobs back from a metric process. `distrust`: its host is doubted from now on.
  void TakeJobsBack(const std::string& metric_process, bool distrust);
  /// Call it for every message of a process: the process is alive.
  void Alive(const std::string& process, int64_t now);
  /// Processes that hold a trial or job of this run and have been silent for too long.
  std::vector<std::string> Silent(int64_t now) const;
  /// Processes that hold a trial or job of this run.
  std::vector<std::string> Holders() const { return Silent(INT64_MAX); }
  void Loaded(const std::string& worker, const protocol::Loaded& loaded);
  /// Call it several times a second. `works(host)` is true if a process of that host computes or
  /// loads anything, for any run. As long as nothing of this run is committed, the run drops the
  /// engine of another host that works at nothing for a while, or gives this run nothing for an
  /// hour.
  void Tick(int64_t now, const std::function<bool(const std::string& host)>& works);
  /// A worker that loads the checkpoint has pulled `done` of `total` bytes.
  void Pulled(const std::string& worker, int64_t done, int64_t total) {
    pulls_[worker] = {done, total};
  }
  /// Takes a message about a trial or metric job of this run, or a span of the timeline. If the
  /// message ends a trial, returns the trial's device seconds, at most the time since its lease.
  /// Returns nothing for any other message. Returns nothing also for an end that does not count:
  /// one that comes late or twice, or from a worker that does not hold the trial.
  std::optional<double> Heard(const std::string& process, const protocol::Message& message);
  void Tell(const FleetNews& news);

  // ---- requests of people
  void Pause(bool paused);
  bool paused() const { return paused_; }
  /// Whether no process works for the run and nothing of it is being written: Drain ends it at
  /// once.
  bool at_rest() const;
  /// The reason why the run waits, if no present worker can do the work that is left; otherwise "".
  const std::string& waiting() const { return waiting_; }
  /// The last failure of a trial or metric job, if nothing was committed since; "" otherwise.
  const std::string& failing() const { return failing_; }
  /// Since when no device has been there that could do what the run needs (monotonic); 0: one is.
  int64_t no_device_us() const { return no_device_us_; }
  /// Finishes what is leased, leases nothing more, and is then over.
  void Drain();
  /// Ends the run. It is over once its threads have ended.
  void Fail(ErrorKind kind, const std::string& text);
  void Cancel(const std::string& why);
  bool planned() const { return planned_; }
  bool over() const { return over_; }
  /// The run works on nothing more: it is over, or will be once its threads have ended.
  bool ending() const { return ending_; }
  bool cancelled() const { return cancelled_; }
  /// Whether the run failed since its checkpoint found no space to be staged in.
  bool found_no_space() const { return found_no_space_; }
  /// Whether every document is scored and nothing failed.
  bool complete() const;
  /// Whether all documents are scored, and only aggregations are left.
  bool only_aggregates() const;
  ProgressSnapshot Progress() const;
  /// {task: {metric, value, stderr}} of finished tasks.
  Json Scores() const;
  /// The timeline so far, in the Trace Event Format.
  Json LiveTimeline() const;
  /// Makes the samples of those documents of a task that are committed, and calls `done` on the
  /// loop. Without `renew`, those made last will do. If nothing of the task is scored, there are
  /// none.
  void MakeSamplesSoFar(const std::string& task, bool renew, SamplesSoFarDone done);
  /// {group: [tasks and groups in it]}; empty until the tasks are prepared.
  Json Groups() const;
  const std::string& fingerprint() const { return fingerprint_; }

  /// The input for EndRun, which waits for the disk. Call it once, after `over`. After this call
  /// the evaluation gives the files thread no more work.
  RunEnding TakeEnding();
  bool ending_taken() const { return ending_taken_; }
  /// The staged checkpoint and its lease, to be released when no process uses it any more.
  std::optional<StagedCheckpoint> TakeStaged() { return std::exchange(staged_, std::nullopt); }

 private:
  struct Failure {
    ErrorKind kind;
    std::string text;
  };
  struct Followable {  // the folder of a staging that can be followed; how many this run has begun
    std::string folder;
    int64_t times = 0;
  };
  // A callback for the loop. It does nothing if the evaluation is gone by then. If it throws, this
  // run fails, and not the loop.
  template <typename Work>
  auto Guarded(Work work) {
    return [weak = weak_from_this(), work = std::move(work)](auto&&... values) mutable {
      const auto self = weak.lock();
      if (!self) return;
      try {
        work(std::forward<decltype(values)>(values)...);
      } catch (...) {
        const Error error = CurrentError();
        self->Fail(error.kind(), error.what());
      }
    };
  }
  // Hands work of another thread to the loop.
  template <typename Work>
  void OnLoop(Work work) {
    support_.loop->Post(Guarded(std::move(work)));
  }

  // evaluation.cc
  void OffLoop(std::function<void()> work, std::function<void()> then);
  void Record(const Json& members, std::function<void()> then);
  void RunThread(std::thread* thread, std::function<void()> work);
  void StartStaging();
  void StartPreparation();
  void OnStaged();
  void CheckEnd();
  bool documents_done() const;
  bool tasks_done() const;
  void End();

  // evaluation_planning.cc
  bool BootstrapsInTime();
  void OnPrepared(std::shared_ptr<const Suite> suite);
  void MaybePlan();
  void MakePlan(Recovery recovery, std::vector<TaskCost> known);
  void OnPlanned(RunPlan plan);
  bool EngineServesTasks();
  bool GenerationIsAsBefore(const Json& now);
  bool NeedsKind(RequestKind kind) const;

  // evaluation_fleet.cc
  bool followable() const;
  bool wants_workers() const;
  bool wants_more_workers(int64_t now) const;
  bool needs_workers() const;
  bool wants_metric_processes() const;
  protocol::Shorten MessageOf(const ShortenOrder& order) const;
  protocol::Lease Granted(const TrialLease& lease, const std::string& worker, const Json& engine);
  void Note(const char* member, Json value);
  void On(const order::TellRefused& refused);
  void On(const order::TellWorkerLost& lost);
  void On(const order::TellMetricProcessLost& lost);
  void On(const order::TellSetAside& aside);
  void On(const order::TellDevices& devices);
  void On(const order::TellNoWorkers& none);
  void On(const order::TellNoMetricProcesses& none);
  void On(const order::TellNobodyElse& nobody);
  void On(const order::TellVain& vain);
  void On(const order::TellWaiting& waiting);

  // evaluation_engine.cc
  bool NothingKept() const;
  void DropEngine(const std::string& why);
  void NoteDevice(const Json& engine);

  // evaluation_messages.cc
  void OnSliceDone(const std::string& worker, const protocol::SliceDone& done);
  void OnProgress(const std::string& worker, const protocol::Progress& progress);
  void OnShortened(const std::string& worker, const protocol::Shortened& shortened);
  std::optional<double> OnTrialDone(const std::string& worker, const protocol::TrialDone& done);
  void OnTrialFailed(const std::string& worker, const protocol::TrialFailed& told);
  std::string InUsersWords(std::string message) const;
  void WarnOnce(const std::string& what, const std::string& cause);
  void OnJobDone(const std::string& metric_process, const protocol::JobDone& done);
  std::vector<int64_t> NoteUnscored(const std::string& metric_process, const MetricJob& job,
                                    const protocol::JobDone& done);
  void WaitsNoMore(size_t task, DocumentRange documents);
  void OnJobFailed(const std::string& metric_process, const protocol::JobFailed& failed);
  void OnSpan(const std::string& process, const protocol::Span& span);
  Witness WitnessOf(const std::string& process) const;
  bool Believed(const std::string& process, const HostDoubts::Refusal& refusal);
  bool FailureCounts(const std::string& process);
  void CarryOut(const HostDoubts::Refusal& refusal);
  void Ignore(const std::string& process, const std::string& what);
  void WhenSound(const std::string& process, FileKind kind, const CommittedFile& file,
                 std::function<void()> commit, std::function<void(const std::string& why)> lost,
                 std::vector<int64_t> documents = {});
  void Lost(const std::string& process, const CommittedFile& file, const std::string& why);

  // evaluation_commits.cc
  void CommitGenerations(const CommittedFile& file);
  void GenerationsCommitted(const CommittedFile& file, const std::vector<int64_t>& won);
  CommittedFile ScoresOf(const MetricJob& job, const protocol::JobDone& done) const;
  void CommitScores(const MetricJob& job, const CommittedFile& file,
                    const std::vector<int64_t>& documents);
  void ScoresCommitted(size_t task, const CommittedFile& file, const std::vector<int64_t>& won);
  void RequireSameModel(const std::string& worker, const Json& engine);
  FinishedTask TaskWithFiles(size_t task) const;
  void FinishTask(size_t task);

  const std::string& HashOf(const MetricJob& job) const;

  std::string Absolute(const std::string& relative) const;
  bool congested() const;

  EvalConfig config_;
  std::string id_;
  std::filesystem::path path_;
  RunJson json_;
  int64_t number_;
  int devices_;
  Support support_;
  Hooks hooks_;
  int64_t begin_us_;
  RunRecord record_;
  // A change of the scheduling need not compile anew what only uses a run (evaluation_scheduling.h)
  struct Scheduling;
  const std::unique_ptr<Scheduling> scheduling_;
  RunMachine& machine_;
  ProcessNumbers& processes_;  // by which the machine knows them
  RunCosts& costs_;
  CostPlace& place_;
  std::string profile_;  // the profile's tag
  Timeline timeline_;

  std::thread staging_thread_;
  std::thread preparation_thread_;
  int threads_running_ = 0;
  std::shared_ptr<std::atomic<bool>> cancel_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<StagedCheckpoint> staged_;
  std::string fingerprint_;
  bool staging_done_ = false;
  bool found_no_space_ = false;
  Followable followable_;
  std::shared_ptr<const Suite> suite_;  // null until the suite is prepared
  bool planning_ = false;
  bool planned_ = false;
  int64_t planned_at_us_ = 0;

  std::map<std::string, size_t> task_index_;
  Json engine_info_;
  std::string engine_by_;        // the worker that reported engine_info_ since this process started
  Witness engine_from_;          // the host of that worker
  int64_t engine_since_us_ = 0;  // since then the run waits for a first result of that host
  int64_t engine_idle_us_ = 0;   // since then that host works at nothing
  std::vector<std::pair<std::string, HeldTrial>> dropped_leases_;  // taken back by the run
  HostDoubts doubts_;
  std::set<std::string> ignored_;  // processes that had a message ignored
  static constexpr size_t kCausesMax = 100;
  std::string failing_;
  std::set<std::string> warned_;  ///< CauseKey of what was said, at most kCausesMax
  int files_lost_ = 0;  // reported files that were not sound, from hosts whose failures count
  std::map<std::string, Json> generation_;  // by task: the generation settings in force
  Json isolation_;
  int pending_commits_ = 0;
  double backlog_bytes_ = 0;                      // generations that wait for scoring
  std::map<std::string, std::string> device_of_;  // kind of device, by worker
  std::map<std::string, Json> isolation_of_;      // by metric process that was leased a job
  // By generations file that was written since this process started: the worker that made it
  std::map<std::string, std::string> makers_;
  std::map<size_t, TaskResult> finished_tasks_;
  struct SoFar;                                           // evaluation_samples.cc
  std::map<std::string, std::shared_ptr<SoFar>> so_far_;  // by task
  std::map<size_t, std::string> not_aggregated_;          // the reason: a fault of the task itself

  // progress, updated from other threads through the loop
  int64_t stage_done_ = 0, stage_total_ = 0;
  size_t prepare_done_ = 0, prepare_total_ = 0;
  std::string stage_note_;
  std::string waiting_;
  int64_t no_device_us_ = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> pulls_;  // bytes done and in all, by worker
  int64_t generated_at_plan_ = 0;
  WorkDone earlier_;                  // work done before this process started
  std::set<std::string> left_parts_;  // tasks with generations that no earlier life finished

  bool paused_ = false;
  bool draining_ = false;
  // Draining: tasks that are being aggregated get one more second
  bool gives_up_finishing_ = false;
  bool cancelled_ = false;
  bool ending_ = false;
  bool over_ = false;
  bool ending_taken_ = false;
  std::optional<Failure> failure_;
};

}  // namespace evald

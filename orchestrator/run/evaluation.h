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
#include "orchestrator/report/progress.h"
#include "orchestrator/report/run_results.h"
#include "orchestrator/report/timeline.h"
#include "orchestrator/run/host_doubts.h"
#include "orchestrator/run/preparation.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/run_costs.h"
#include "orchestrator/run/run_directory.h"
#include "orchestrator/run/run_ending.h"
#include "orchestrator/run/run_json.h"
#include "orchestrator/run/run_machine.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/run/run_plan.h"
#include "orchestrator/run/task_finisher.h"
#include "orchestrator/run/worker_profile.h"
#include "orchestrator/staging/stager.h"
#include "orchestrator/state/database_thread.h"
#include "protocol/messages.h"

namespace evald {

/// What the fleet tells a run.
using FleetNews =
    std::variant<order::TellRefused, order::TellWorkerLost, order::TellScorerLost,
                 order::TellSetAside, order::TellDevices, order::TellNoWorkers,
                 order::TellNoScorers, order::TellNobodyElse, order::TellVain, order::TellWaiting>;

/// One run: stages its checkpoint, prepares its tasks, says what there is to do, commits what is
/// reported done, and makes results of it. It starts no process and knows no socket and no fleet: a
/// Fleet looks at its View, asks it for trials and metric jobs and passes on what the processes
/// say. Lives on the loop's thread, which it never keeps waiting: staging and preparation have
/// threads of their own, the files thread writes its folder and plans, in the order in which it is
/// asked. What fails there ends this run and no other.
///
///     stage ──► load on a worker ─┐
///     prepare ────────────────────┴─► recover ──► plan ──► lease ⇄ commit ⇄ score ──► over
class Evaluation : public std::enable_shared_from_this<Evaluation> {
 public:
  /// What it stands on; outlives it.
  struct Support {
    Loop* loop = nullptr;
    DatabaseThread* database = nullptr;
    TaskFinisher* finisher = nullptr;
    WorkThread* files = nullptr;     ///< writes the runs' folders
    std::filesystem::path binaries;  ///< folder of evald-prepare
    std::string user = {};           ///< whose run it is; "" where there are no users
  };
  struct Hooks {
    /// View says something else by itself. Nothing that is called here calls the evaluation.
    std::function<void()> changed;
    std::function<void()> over;  ///< nothing more will happen; TakeEnding may be called. Once.
    /// Something that followers should hear of: "task.done" and its data.
    std::function<void(const std::string& type, const Json& data)> event;
    /// Where a process runs. Without it all processes are the service's own.
    std::function<Witness(const std::string& process)> witness = nullptr;
  };

  /// `number` names the run in the database and on the wire; `devices` is what planning aims at.
  Evaluation(EvalConfig config, RunDirectory directory, int64_t number, int devices,
             Support support, Hooks hooks);
  ~Evaluation();

  /// Begins to stage and to prepare.
  void Start();

  int64_t number() const { return number_; }
  const std::string& id() const { return id_; }
  const EvalConfig& config() const { return config_; }

  // ---- for the fleet (evaluation_fleet.cc, evaluation_messages.cc)
  /// The run as the fleet sees it, without what the queue knows: its user and priority.
  RunView View(int64_t now) const;
  WorkerProfile profile() const;
  /// The checkpoint, once View says so.
  protocol::Load load() const;
  /// The folder into which the checkpoint is being staged.
  protocol::Follow follow() const { return {followable_.folder}; }
  /// For the timeline: a process of the fleet.
  void AddRow(const std::string& process, const std::string& title, bool is_device);
  /// `engine` is the worker's, as it said when it had loaded the checkpoint.
  std::optional<protocol::Lease> LeaseTrial(const std::string& worker, const Json& engine);
  struct Relief {
    std::vector<std::pair<std::string, protocol::Shorten>>
        shorten;                          ///< to be sent, so that the worker gets something
    std::optional<protocol::Lease> copy;  ///< else: of a trial that another is late with
  };
  /// For a worker of this run's checkpoint that is idle and finds nothing.
  Relief Relieve(const std::string& worker, const Json& engine);
  /// `isolation` is the metric process's. With `made_by`: only a job whose generations such a
  /// worker made.
  std::optional<protocol::Job> LeaseJob(
      const std::string& scorer, const Json& isolation,
      const std::function<bool(const std::string& worker)>& made_by = {});
  /// Trials that others have committed meanwhile, by worker: to be revoked.
  std::vector<std::pair<std::string, HeldTrial>> TakeWithdrawn();
  /// Any process has said anything.
  void Alive(const std::string& process, int64_t now);
  /// Processes that hold something of this run and have not been alive for too long.
  std::vector<std::string> Silent(int64_t now) const;
  void Loaded(const std::string& worker, const protocol::Loaded& loaded);
  /// A worker that loads the checkpoint has pulled so many of its bytes.
  void Pulled(const std::string& worker, int64_t done, int64_t total) {
    pulls_[worker] = {done, total};
  }
  /// A message about a trial or metric job of this run, or a span. Gives the device seconds that
  /// count of a trial that is done: no more than passed since the lease. Nothing for any other
  /// message, and for an end that does not count, since it comes late, or twice, or from a worker
  /// that does not hold the trial.
  std::optional<double> Heard(const std::string& process, const protocol::Message& message);
  void Tell(const FleetNews& news);

  // ---- what people ask
  void Pause(bool paused);
  bool paused() const { return paused_; }
  /// What the run waits for, since no worker that is there can do what is left; "" for nothing.
  const std::string& waiting() const { return waiting_; }
  /// Finishes what is leased, leases nothing more, is over then.
  void Drain();
  /// Is over as soon as its threads have ended.
  void Fail(ErrorKind kind, const std::string& text);
  void Cancel(const std::string& why);
  bool planned() const { return planned_; }
  bool over() const { return over_; }
  /// It works on nothing more: it is over, or will be once its threads have ended.
  bool ending() const { return ending_; }
  bool cancelled() const { return cancelled_; }
  /// Every document is scored, and nothing failed.
  bool complete() const {
    return planned_ && !failure_ && machine_.complete() &&
           finished_tasks_.size() == machine_.tasks().size();
  }
  ProgressSnapshot Progress() const;
  /// {task: {metric, value, stderr}} of the tasks that are finished.
  Json Scores() const;
  const std::string& fingerprint() const { return fingerprint_; }

  /// After `over`, once: what EndRun ends the run with, which waits for the disk. The files thread
  /// has nothing else of this run to do after it.
  RunEnding TakeEnding();
  bool ending_taken() const { return ending_taken_; }
  /// The staged checkpoint and its lease, to be released when no process uses it any more.
  std::optional<StagedCheckpoint> TakeStaged() { return std::exchange(staged_, std::nullopt); }

 private:
  struct Failure {
    ErrorKind kind;
    std::string text;
  };
  struct Followable {  // a staging: where, once it can be followed, and which time it is
    std::string folder;
    int64_t times = 0;
  };
  // What the loop calls later: nothing happens when the evaluation is gone by then. A failure is
  // the run's, not the loop's.
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
  // Work that another thread hands to the loop.
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
  bool wants_scorers() const;
  protocol::Lease Granted(const TrialLease& lease, const std::string& worker, const Json& engine);
  void NoteDevice(const Json& engine);
  void Note(const char* member, Json value);
  void On(const order::TellRefused& refused);
  void On(const order::TellWorkerLost& lost);
  void On(const order::TellScorerLost& lost);
  void On(const order::TellSetAside& aside);
  void On(const order::TellDevices& devices);
  void On(const order::TellNoWorkers& none);
  void On(const order::TellNoScorers& none);
  void On(const order::TellNobodyElse& nobody);
  void On(const order::TellVain& vain);
  void On(const order::TellWaiting& waiting);

  // evaluation_messages.cc
  void OnSliceDone(const std::string& worker, const protocol::SliceDone& done);
  void OnProgress(const std::string& worker, const protocol::Progress& progress);
  void OnShortened(const std::string& worker, const protocol::Shortened& shortened);
  std::optional<double> OnTrialDone(const std::string& worker, const protocol::TrialDone& done);
  void OnTrialFailed(const std::string& worker, const protocol::TrialFailed& failed);
  void OnJobDone(const std::string& scorer, const protocol::JobDone& done);
  void OnJobFailed(const std::string& scorer, const protocol::JobFailed& failed);
  void OnSpan(const std::string& process, const protocol::Span& span);
  Witness WitnessOf(const std::string& process) const;
  bool Believed(const std::string& process, const HostDoubts::Refusal& refusal);
  bool FailureCounts(const std::string& process);
  void CarryOut(const HostDoubts::Refusal& refusal);
  void Ignore(const std::string& process, const std::string& what);
  void WhenThere(const std::string& process, const CommittedFile& file,
                 std::function<void()> commit, std::function<void(const std::string& why)> lost);
  void Lost(const std::string& process, const CommittedFile& file, const std::string& why);
  void CommitGenerations(const CommittedFile& file);
  void GenerationsCommitted(const CommittedFile& file, const std::vector<int64_t>& won);
  CommittedFile ScoresOf(const MetricJob& job, const protocol::JobDone& done) const;
  void CommitScores(const MetricJob& job, const CommittedFile& file);
  void ScoresCommitted(size_t task, const CommittedFile& file, const std::vector<int64_t>& won);
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
  RunMachine machine_;
  std::string profile_;  // its tag
  Timeline timeline_;

  std::thread staging_thread_;
  std::thread preparation_thread_;
  int threads_running_ = 0;
  std::shared_ptr<std::atomic<bool>> cancel_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<StagedCheckpoint> staged_;
  std::string fingerprint_;
  bool staging_done_ = false;
  Followable followable_;
  std::shared_ptr<const Suite> suite_;  // null until it is prepared
  bool planning_ = false;
  bool planned_ = false;
  int64_t planned_at_us_ = 0;

  std::map<std::string, size_t> task_index_;
  Json engine_info_;
  std::string engine_by_;  // the worker that said so, in this life
  HostDoubts doubts_;
  std::set<std::string> ignored_;  // processes of which something was ignored
  int files_lost_ = 0;             // that were reported and are not there, where that counts
  std::map<std::string, Json> generation_;  // by task: the generation settings in force
  Json isolation_;
  int pending_commits_ = 0;
  double backlog_bytes_ = 0;  // of generations that wait for scoring
  CostPlace place_;
  RunCosts costs_;
  std::map<std::string, std::string> device_of_;  // kind, by worker
  std::map<std::string, Json> isolation_of_;      // by metric process that was leased a job
  std::map<std::string, std::string>
      makers_;  // the worker that made a generations file, in this life
  std::map<size_t, TaskResult> finished_tasks_;

  // progress, updated from other threads through the loop
  int64_t stage_done_ = 0, stage_total_ = 0;
  size_t prepare_done_ = 0, prepare_total_ = 0;
  std::string stage_note_;
  std::string waiting_;
  std::map<std::string, std::pair<int64_t, int64_t>> pulls_;  // bytes done and in all, by worker
  int64_t generated_at_plan_ = 0;
  WorkDone earlier_;  // what lives before this one did

  bool paused_ = false;
  bool draining_ = false;
  bool gives_up_finishing_ =
      false;  // it drains, and tasks that are being aggregated have a moment left
  bool cancelled_ = false;
  bool ending_ = false;
  bool over_ = false;
  bool ending_taken_ = false;
  std::optional<Failure> failure_;
};

}  // namespace evald

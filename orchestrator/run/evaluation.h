#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "evald/error.h"
#include "evald/request.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/report/progress.h"
#include "orchestrator/report/timeline.h"
#include "orchestrator/run/preparation.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/run_costs.h"
#include "orchestrator/run/run_directory.h"
#include "orchestrator/run/run_ending.h"
#include "orchestrator/run/run_json.h"
#include "orchestrator/run/run_machine.h"
#include "orchestrator/run/run_plan.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/run/task_finisher.h"
#include "orchestrator/staging/stager.h"
#include "orchestrator/state/database_thread.h"
#include "orchestrator/report/run_results.h"
#include "protocol/messages.h"

namespace evald {

/// How the fingerprint of a Load begins whose checkpoint is not staged, but read where it lies.
inline constexpr const char* kUnstaged = "unstaged:";

/// What a worker's command line decides: a worker serves every run of the same profile.
struct WorkerProfile {
  std::string engine;
  Json settings = Json::object();
  int threads = 1;
  uint64_t seed = 0;
  bool operator==(const WorkerProfile&) const = default;
};

/// One run: stages its checkpoint, prepares its tasks, says what there is to do, commits what is
/// reported done, and makes results of it. It starts no process and knows no socket: a Fleet asks it
/// for trials and metric jobs and passes on what the processes say. Lives on the loop's thread, which it never keeps
/// waiting: staging and preparation have threads of their own, the files thread writes its folder and plans, in the
/// order in which it is asked. What fails there ends this run and no other.
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
  };
  struct Hooks {
    std::function<void()> work;  ///< there may be something to lease or load
    std::function<void()> over;  ///< nothing more will happen; TakeEnding may be called. Once.
    /// Something that followers should hear of: "task.done" and its data.
    std::function<void(const std::string& type, const Json& data)> event;
  };

  /// `number` names the run in the database and on the wire; `devices` is what planning aims at.
  Evaluation(EvalConfig config, RunDirectory directory, int64_t number, int devices, Support support,
             Hooks hooks);
  ~Evaluation();

  /// Begins to stage and to prepare.
  void Start();

  // ---- what the fleet asks
  int64_t number() const { return number_; }
  const std::string& id() const { return id_; }
  const EvalConfig& config() const { return config_; }
  const std::filesystem::path& directory() const { return path_; }
  WorkerProfile profile() const;
  /// The checkpoint may be loaded.
  bool staged() const { return staging_done_ && !over_; }
  protocol::Load load() const;
  /// While the checkpoint is being staged: where, once that can be followed, and which time it is.
  struct Followable {
    std::string folder;
    int times = 0;
    bool operator==(const Followable&) const = default;
  };
  std::optional<Followable> followable() const;
  /// A worker with the checkpoint loaded would be of use.
  bool wants_workers() const;
  /// So would one that has to load it first: others have much that they have not begun.
  bool wants_more_workers() const;
  /// Something is left that only a worker can do, whether one is at it or not.
  bool needs_workers() const;
  bool wants_scorers() const;
  /// The first worker that loaded the checkpoint has said what its engine is.
  bool engine_known() const { return !engine_info_.is_null(); }
  /// It computes on a GPU of ours.
  bool engine_on_gpu() const { return engine_known() && engine_info_.contains("device_id"); }
  /// The kind of device it computes on; "" while that is not known.
  std::string device_kind() const { return engine_known() ? engine_info_.value("device", "") : ""; }
  /// Whether this engine (EngineInfo) may answer for this run: beside GPUs of one kind nothing else does, since
  /// the numbers of others differ in their last bits.
  bool Suits(const Json& engine) const;
  /// Device seconds that nobody works on; nothing before it is planned.
  std::optional<double> open_s() const;
  /// Bytes of the checkpoint, once it is staged; 0 where none has to be.
  double checkpoint_bytes() const { return staged_ ? static_cast<double>(staged_->report().bytes) : 0; }
  /// Trials that are leased.
  size_t leased() const { return machine_.trials().leased(); }
  /// `device` is the kind of device that the worker computes on.
  std::optional<protocol::Lease> LeaseTrial(const std::string& worker, const std::string& device);
  /// For an idle worker that Relieve has nothing for: a trial that another is late with, a second time.
  std::optional<protocol::Lease> LeaseCopy(const std::string& worker, const std::string& device);
  /// So many devices are there from now on.
  void SetDevices(int devices);
  /// With `made_by`: only a job whose generations such a worker made.
  std::optional<protocol::Job> LeaseJob(const std::string& scorer,
                                        const std::function<bool(const std::string& worker)>& made_by = {});
  /// Leases that are still held, to be revoked when the run is over.
  std::vector<protocol::Revoke> HeldTrials(const std::string& worker) const;

  // ---- what the fleet tells
  void RowAppeared(const std::string& process, const std::string& title, bool is_device);
  void WorkerLoaded(const std::string& worker, const protocol::Loaded& loaded);
  /// Loading failed in a way that would repeat itself elsewhere.
  void LoadRefused(const std::string& worker, const std::string& why);
  void WorkerHeard(const std::string& worker, int64_t now) { machine_.WorkerHeard(worker, now); }
  void ScorerHeard(const std::string& scorer, int64_t now) { machine_.ScorerHeard(scorer, now); }
  void OnSliceDone(const std::string& worker, const protocol::SliceDone& done);
  void OnProgress(const std::string& worker, const protocol::Progress& progress);
  /// A worker that loads the checkpoint has pulled so many of its bytes.
  void OnPull(const std::string& worker, int64_t done, int64_t total) { pulls_[worker] = {done, total}; }
  void DeviceSetAside(const std::string& device, const std::string& why);
  /// A device whose engine is `engine` computes for this run: results name every GPU, also those of a life before.
  void NoteDevice(const Json& engine);
  /// A worker of this run's checkpoint is idle: what is to be sent to whom, so that it gets something.
  std::vector<std::pair<std::string, protocol::Shorten>> Relieve(const std::string& worker);
  void OnShortened(const protocol::Shortened& shortened);
  /// Trials that others have committed meanwhile, by worker: to be sent.
  std::vector<std::pair<std::string, protocol::Revoke>> TakeWithdrawn();
  /// False for one that comes late, or twice.
  bool OnTrialDone(const std::string& worker, const protocol::TrialDone& done);
  void OnTrialFailed(const std::string& worker, const protocol::TrialFailed& failed);
  void OnJobDone(const std::string& scorer, const protocol::JobDone& done, const Json& isolation);
  void OnJobFailed(const std::string& scorer, const protocol::JobFailed& failed);
  void OnSpan(const std::string& process, const protocol::Span& span);
  /// With `at_fault` its device may be the cause: LeaseTable::Lose.
  void WorkerLost(const std::string& worker, const std::string& cause, bool at_fault = false);
  void ScorerLost(const std::string& scorer, const std::string& cause);
  std::vector<std::string> SilentWorkers(int64_t now) const { return machine_.SilentWorkers(now); }
  std::vector<std::string> SilentScorers(int64_t now) const { return machine_.SilentScorers(now); }
  /// No worker (scorer) is left, and none will come back.
  void NoWorkers(const std::string& cause);
  void NoScorers(const std::string& cause);
  /// No worker that is there can do what is left: what the run waits for; "" for nothing. Says so where it is new.
  void SetWaiting(const std::string& what);

  // ---- what people ask
  void Pause(bool paused);
  bool paused() const { return paused_; }
  /// As SetWaiting has it, for people.
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
  bool complete() const { return planned_ && !failure_ && machine_.complete(); }
  ProgressSnapshot Progress() const;
  /// {task: {metric, value, stderr}} of the tasks that are finished.
  Json Scores() const;
  const std::string& fingerprint() const { return fingerprint_; }

  /// After `over`, once: what EndRun ends the run with, which waits for the disk. The files thread has nothing else of
  /// this run to do after it.
  RunEnding TakeEnding();
  bool ending_taken() const { return ending_taken_; }
  /// The staged checkpoint and its lease, to be released when no process uses it any more.
  std::optional<StagedCheckpoint> TakeStaged() { return std::exchange(staged_, std::nullopt); }

 private:
  struct Failure {
    ErrorKind kind;
    std::string text;
  };
  // What the loop calls later: nothing happens when the evaluation is gone by then. A failure is the run's, not the
  // loop's.
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
  void OnPrepared(std::shared_ptr<const Suite> suite);
  void MaybePlan();
  void MakePlan(Recovery recovery, std::vector<TaskCost> known);
  void OnPlanned(RunPlan plan);
  bool EngineServesTasks();
  bool GenerationIsAsBefore(const Json& now);
  bool NeedsKind(RequestKind kind) const;

  // evaluation_messages.cc
  void Note(const char* member, Json value);
  void CommitGenerations(const CommittedFile& file);
  void GenerationsCommitted(const CommittedFile& file, const std::vector<int64_t>& won);
  void CommitScores(const MetricJob& job, const protocol::JobDone& done);
  void ScoresCommitted(size_t task, const CommittedFile& file, const std::vector<int64_t>& won);
  void FinishTask(size_t task);

  const std::string& HashOf(const MetricJob& job) const;
  protocol::Lease Granted(const TrialLease& lease, const std::string& worker, const std::string& device);

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
  Timeline timeline_;

  std::thread staging_thread_;
  std::thread preparation_thread_;
  int threads_running_ = 0;
  std::atomic<bool> cancel_{false};
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
  std::map<std::string, Json> generation_;  // by task: the generation settings in force
  Json isolation_;
  int pending_commits_ = 0;
  double backlog_bytes_ = 0;  // of generations that wait for scoring
  CostPlace place_;
  RunCosts costs_;
  std::map<std::string, std::string> device_of_;  // kind, by worker
  std::map<std::string, std::string> makers_;  // the worker that made a generations file, in this life
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
  bool cancelled_ = false;
  bool ending_ = false;
  bool over_ = false;
  bool ending_taken_ = false;
  std::optional<Failure> failure_;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/schedule/corrections.h"
#include "orchestrator/schedule/doubling.h"
#include "orchestrator/schedule/lease_table.h"
#include "orchestrator/schedule/open_work.h"
#include "orchestrator/schedule/policy.h"
#include "orchestrator/schedule/prior.h"
#include "orchestrator/schedule/stealing.h"

namespace evald {

/// A task of a run as the machine sees it.
struct MachineTask {
  std::string name;
  int64_t documents = 0;
  bool slow_scoring = false;         ///< its metric runs programs
  double requests_per_document = 1;  ///< mean, repeats included
};

/// What Plan needs besides the tasks.
struct PlanSetup {
  std::string policy = "elastic";
  LeaseCosts costs;
  int devices = 1;  ///< that will work on the run
  int places = 1;   ///< requests that each has under way at once
  int score_slots = 1;
  int64_t first_trial = 0;
  /// A metric process that outlives the orchestrator has seen the numbers of the life before.
  int64_t first_job = 0;
};

/// A slice as it is sent to a worker.
struct LeasedSlice {
  size_t task = 0;
  DocumentRange documents;
  std::string file;                  ///< relative to the run's folder
  std::vector<std::string> salvage;  ///< likewise
};

struct TrialLease {
  int64_t trial = 0;
  int attempt = 0;
  std::vector<LeasedSlice> slices;
};

/// A worker is to end a slice early, at `end`.
struct ShortenOrder {
  std::string worker;
  int64_t trial = 0;
  int attempt = 0;
  size_t task = 0;
  int64_t first = 0;  ///< where the slice begins
  int64_t end = 0;
};

/// A worker is to let a trial go, which another has committed. Nobody failed.
struct WithdrawOrder {
  std::string worker;
  int64_t trial = 0;
  int attempt = 0;
};

/// A metric job: score `documents` of a committed generations file.
struct MetricJob {
  int64_t job = 0;
  size_t task = 0;
  DocumentRange documents;
  std::string generations;  ///< relative to the run's folder
  std::string file;         ///< scores file to write, likewise
  int64_t trial = 0;        ///< of the generations file
  int attempt = 0;          ///< likewise
  int job_attempt = 0;      ///< of the job itself: fences what is reported of it
};

/// Something that will be missing from the run's results, and why.
struct Missing {
  std::string what;  ///< "task gsm8k, documents 12 to 31: generation"
  std::string cause;
};

/// The state of one run: which documents are generated and scored, who works on what. A plain
/// value: events and times in, consequences out; no clock, no I/O. The coordinator around it
/// carries them out. Documents count from when their commitment is durable, not from when they are
/// reported. A report of a trial or job counts only from the process that holds it, with the
/// attempt it holds: from another it changes nothing.
class RunMachine {
 public:
  RunMachine(LeaseLimits trial_limits, LeaseLimits job_limits)
      : trials_table_(trial_limits), jobs_table_(job_limits) {}

  void SetTasks(std::vector<MachineTask> tasks);

  // What an earlier life of the run left, before Plan.
  void AdoptGenerations(size_t task, int64_t document) {
    tasks_.at(task).generated.at(document) = true;
  }
  void AdoptScores(size_t task, int64_t document) { tasks_.at(task).scored.at(document) = true; }
  /// A file whose lines may be resumed by any slice of the task.
  void AddSalvage(size_t task, const std::string& file) { tasks_.at(task).salvage.push_back(file); }

  /// What a task is expected to cost, before Plan. Without it all documents are alike.
  void Expect(size_t task, const Prior& prior) {
    costs_.Replace(task, {prior.estimate, prior.weight});
  }

  /// What is open may be leased from now on. Documents that are generated but not scored become
  /// jobs through GenerationsCommitted.
  void Plan(const PlanSetup& setup);
  /// So many devices work on the run from now on.
  void SetDevices(int devices) { work_.SetDevices(devices); }

  // ---- trials
  /// What failed goes first; else the policy cuts a trial from what is open.
  std::optional<TrialLease> LeaseTrial(const std::string& worker, int64_t now);
  /// The file that a slice's generations are written to, by its first document: a path below the
  /// run's folder.
  std::string GenerationsFile(size_t task, int64_t first, int64_t trial, int attempt) const;
  /// A slice's file is complete: true when it counts (the worker holds the lease, the slice is
  /// its).
  bool SliceReported(const std::string& worker, int64_t trial, int attempt, size_t task,
                     DocumentRange documents);
  /// False when the worker does not hold the lease. With slices missing it is a failure.
  bool TrialDone(const std::string& worker, int64_t trial, int attempt);
  bool TrialFailed(const std::string& worker, int64_t trial, int attempt, const std::string& cause,
                   bool retry);
  /// Each slice of the trial is reported.
  bool whole(int64_t trial) const { return trials_.count(trial) > 0 && AllReported(trial); }
  /// The worker's failure does not count: the trial goes to whoever asks next, which may resume
  /// what was written. False without the lease.
  bool TrialGivenBack(const std::string& worker, int64_t trial, int attempt);
  /// What a slice was reported to have is not there: those of its documents that nobody has
  /// generated are open again.
  void SliceLost(size_t task, DocumentRange documents);
  /// The attempt found a request of `task` that can never be answered. The task is refused; what
  /// the trial has of other tasks is open again, and nothing of it counts as failed. False without
  /// the lease.
  bool RequestRefused(const std::string& worker, int64_t trial, int attempt, size_t task,
                      const std::string& cause);
  /// The task can never be whole: nothing of it is leased any more. After Plan.
  void RefuseTask(size_t task, const std::string& cause);
  /// The worker ended the slice that begins at `first` early, at `end`: what lies behind is open
  /// again. True when something is.
  bool Shortened(const std::string& worker, int64_t trial, int attempt, size_t task, int64_t first,
                 int64_t end);
  /// A request of the task is under way for so long and has not ended.
  void Overdue(size_t task, double seconds);
  /// The heartbeat of a worker: so many requests of the trial are done, and of those in the engine
  /// one has been there for `oldest_s`; 0: none is.
  void Progressed(const std::string& worker, int64_t trial, int attempt, int64_t requests_done,
                  double oldest_s, int64_t now);
  /// What others are to give back for `worker`, which has nothing to do and finds nothing open.
  /// Nothing when they have too little that is not begun, or were asked a moment ago.
  std::vector<ShortenOrder> Relieve(const std::string& worker, int64_t now);
  /// Seconds of work that one of the workers has and has not begun, when nothing is open.
  double waiting_s(int64_t now) const;
  /// What an idle worker computes a second time when nothing is open or waits anywhere, because the
  /// worker that has it is expected to end it clearly later (doubling.h). The slices of whichever
  /// reports first count; the other's trial is withdrawn. A copy that fails is forgotten: the trial
  /// it is of has its own attempts.
  std::optional<TrialLease> LeaseCopy(const std::string& worker, int64_t now);
  /// The trial is a copy: what it salvages took others' time.
  bool is_copy(int64_t trial) const;
  /// What was withdrawn since the last call.
  std::vector<WithdrawOrder> TakeWithdrawn() { return std::exchange(withdrawn_, {}); }
  /// What `documents` took this worker's device, the longest of their requests `longest_s`:
  /// corrects the estimate.
  void Measured(const std::string& worker, size_t task, int64_t documents, double device_s,
                double longest_s);
  void WorkerHeard(const std::string& worker, int64_t now) { trials_table_.Heard(worker, now); }
  /// `at_fault` as in LeaseTable::Lose.
  void WorkerLost(const std::string& worker, const std::string& cause, bool at_fault = false);

  /// These documents' generations are durable in `file`. Queues their scoring.
  void GenerationsCommitted(size_t task, const std::vector<int64_t>& documents,
                            const std::string& file, int64_t trial, int attempt);

  // ---- metric jobs
  /// The first job, or the first whose generations file `fits`.
  std::optional<MetricJob> LeaseJob(
      const std::string& scorer, int64_t now,
      const std::function<bool(const std::string& generations)>& fits = {});
  /// The job's scores file is complete: the job when it counts.
  std::optional<MetricJob> JobDone(const std::string& scorer, int64_t job, int attempt);
  /// False when the metric process does not hold the job. Without another try, the task itself
  /// cannot be scored: it is refused.
  bool JobFailed(const std::string& scorer, int64_t job, int attempt, const std::string& cause,
                 bool retry);
  /// The failure does not count: the job goes to whoever asks next. False without the lease.
  bool JobGivenBack(const std::string& scorer, int64_t job, int attempt) {
    return jobs_table_.GiveBack(scorer, job, attempt);
  }
  /// The scores that the job was reported to have are not there: its documents are scored again.
  void ScoresLost(const MetricJob& job);
  void MeasuredScoring(size_t task, int64_t documents, double score_s);
  void ScorerHeard(const std::string& scorer, int64_t now) { jobs_table_.Heard(scorer, now); }
  void ScorerLost(const std::string& scorer, const std::string& cause);
  /// These documents' scores are durable.
  void ScoresCommitted(size_t task, const std::vector<int64_t>& documents);

  // ---- looking
  std::vector<std::string> SilentWorkers(int64_t now) const { return trials_table_.Silent(now); }
  std::vector<std::string> SilentScorers(int64_t now) const { return jobs_table_.Silent(now); }
  const LeaseTable& trials() const { return trials_table_; }
  const LeaseTable& jobs() const { return jobs_table_; }
  const std::vector<MachineTask>& tasks() const { return specs_; }
  int64_t generated(size_t task) const;
  /// Documents, by task, that workers say they have done and that are not committed: for people.
  std::vector<int64_t> under_way() const;
  int64_t scored(size_t task) const;
  bool task_finished(size_t task) const { return scored(task) == specs_.at(task).documents; }
  /// Nothing of the task is salvaged from an earlier life.
  bool fresh(size_t task) const { return tasks_.at(task).salvage.empty(); }
  /// There is something to lease.
  bool has_trials() const { return work_.documents() > 0 || trials_table_.queued() > 0; }
  /// Device seconds that what is open is expected to take.
  double open_s() const { return work_.device_s(); }
  /// Nothing is open or leased.
  bool trials_idle() const { return work_.documents() == 0 && trials_table_.idle(); }
  bool idle() const { return trials_idle() && jobs_table_.idle(); }
  /// What the task is expected to cost by now.
  TaskEstimate estimate(size_t task) const { return costs_.Now(task); }
  /// Every document is scored.
  bool complete() const;
  /// Every task is scored or refused, and one is refused: nothing would become of another attempt.
  bool refused() const;
  /// What was given up. Empty when nothing was.
  std::vector<Missing> missing() const;

 private:
  struct TaskState {
    std::vector<bool> generated;
    std::vector<bool> scored;
    int64_t generated_count = 0;
    int64_t scored_count = 0;
    std::vector<std::string> salvage;
    std::optional<std::string> refused;  // why
  };
  struct SliceState {
    size_t task = 0;
    DocumentRange documents;
    bool reported = false;
    std::vector<std::string> salvage;
  };
  struct TrialState {
    std::vector<SliceState> slices;
    int64_t requests_done = 0;  // of the attempt under way
    int64_t since_us = 0;       // its oldest request is in the engine, or it is leased
    bool copy = false;
    int copies = 0;  // that were made of it
  };
  int64_t CutTrial(const std::string& worker);
  int DeviceOf(const std::string& worker);
  std::vector<WaitingDocuments> WaitingOf(const std::string& worker) const;
  TrialLease LeaseOf(const Grant& grant, int64_t now);
  void ReportBegun(const std::string& worker, int64_t now);
  void Supersede(int64_t trial, size_t task, DocumentRange documents);
  void Withdraw(int64_t trial);
  void EndCopy(int64_t trial, int attempt);
  void Part(int64_t trial);
  std::string FileOf(const SliceState& slice, int64_t trial, int attempt) const;
  bool AllReported(int64_t trial) const;
  bool CompleteTrial(const std::string& worker, int64_t trial, int attempt);
  // The half-written files of an attempt that ended can be resumed by the next one.
  void KeepPartsOf(int64_t trial, int attempt);
  void Reopen(const SliceState& slice, const std::string& file);
  void AddJob(size_t task, DocumentRange documents, const std::string& file, int64_t trial,
              int attempt);

  std::vector<MachineTask> specs_;
  std::vector<TaskState> tasks_;
  std::map<int64_t, TrialState> trials_;
  std::map<int64_t, MetricJob> jobs_;
  OpenWork work_{1, 1, 1};
  std::unique_ptr<Policy> policy_;
  Corrections costs_;
  std::map<std::string, int> device_of_;  // of each worker that asked
  std::vector<std::string> worker_of_;    // by device
  Stealing stealing_{0};
  Doubling doubling_;
  double lease_s_ = 0;
  std::map<int64_t, int64_t> partner_;  // of a trial its live copy, and of a copy its trial
  std::vector<WithdrawOrder> withdrawn_;
  std::map<std::string, int64_t> relief_;  // until when a worker waits for what others give back
  LeaseTable trials_table_;
  LeaseTable jobs_table_;
  int64_t next_trial_ = 0;
  int64_t next_job_ = 0;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/schedule/backups.h"
#include "orchestrator/schedule/corrections.h"
#include "orchestrator/schedule/device_speeds.h"
#include "orchestrator/schedule/lease_table.h"
#include "orchestrator/schedule/numbered.h"
#include "orchestrator/schedule/open_work.h"
#include "orchestrator/schedule/policy.h"
#include "orchestrator/schedule/prior.h"
#include "orchestrator/schedule/stealing.h"

namespace evald {

/// Microseconds as seconds.
inline double Seconds(int64_t micros) { return static_cast<double>(micros) / 1e6; }

/// A task of a run as the machine sees it.
struct MachineTask {
  std::string name;
  int64_t documents = 0;
  bool slow_scoring = false;         ///< its metric runs programs
  double requests_per_document = 1;  ///< mean, repeats included
  /// The task is a program of the user's. Its trials get no backups: a second worker would only run
  /// the program once more.
  bool command = false;
  /// Another model rates the answers. The task's jobs wait for that model: one of a run is leased
  /// at a time, after those that only compute, and has many calls under way.
  bool judged = false;
};

/// The input of Plan besides the tasks.
struct PlanSetup {
  std::string policy = "elastic";
  LeaseCosts costs;
  int devices = 1;  ///< devices that will work on the run
  int places = 1;   ///< requests that each has under way at once
  int score_slots = 1;
  int64_t first_trial = 0;
  /// The number of the first metric job. It must be higher than every job number of earlier
  /// orchestrator processes, since a metric process that outlived them still knows those numbers.
  int64_t first_job = 0;
};

/// A slice in the form in which it is sent to a worker.
struct LeasedSlice {
  size_t task = 0;
  DocumentRange documents;
  std::vector<std::string> salvage;  ///< files to resume from, relative to the run's folder
};

struct TrialLease {
  int64_t trial = 0;
  int attempt = 0;
  std::vector<LeasedSlice> slices;
};

/// A worker must end a slice early, at `end`.
struct ShortenOrder {
  Holder worker = kNobody;
  int64_t trial = 0;
  int attempt = 0;
  size_t task = 0;
  int64_t first = 0;  ///< where the slice begins
  int64_t end = 0;
};

/// A worker must let go of a trial that another worker has committed. This is no failure.
struct RevokeOrder {
  Holder worker = kNobody;
  int64_t trial = 0;
  int attempt = 0;
};

/// One trial in a worker's heartbeat.
struct TrialProgress {
  int64_t trial = 0;
  int attempt = 0;
  int64_t requests_done = 0;
  double oldest_s = 0;   ///< age of the trial's oldest request in the engine; 0: there is none
  int64_t salvaged = 0;  ///< of the requests done, those that an earlier attempt had answered
};

/// A metric job: score `documents` of a committed generations file.
struct MetricJob {
  int64_t job = 0;
  size_t task = 0;
  DocumentRange documents;
  std::string generations;  ///< relative to the run's folder
  int64_t trial = 0;        ///< the generations file's
  int attempt = 0;          ///< the generations file's
  int job_attempt = 0;      ///< the job's own attempt: its reports must carry it
};

/// Something that the run's results will lack, and the reason.
struct Missing {
  std::string what;  ///< "task gsm8k, documents 12 to 31: generation"
  std::string cause;
};

/// The state of one run: which documents are generated and scored, and who works on what. A plain
/// value: events and times go in, consequences come out; no clock, no I/O. Its owner carries the
/// consequences out. Workers and metric processes are numbers, which the machine's owner chooses
/// (LeaseTable). A document counts once its commit is durable, not when it is reported. A report of
/// a trial or job counts only from the process that holds it, with the attempt that it holds; any
/// other changes nothing.
class RunMachine {
 public:
  RunMachine(LeaseLimits trial_limits, LeaseLimits job_limits)
      : trials_table_(trial_limits), jobs_table_(job_limits) {}

  void SetTasks(std::vector<MachineTask> tasks);

  // The next three adopt results that earlier orchestrator processes left. Call them before Plan.
  void AdoptGenerations(size_t task, int64_t document) {
    tasks_.at(task).generated.at(document) = true;
  }
  void AdoptScores(size_t task, int64_t document) { tasks_.at(task).scored.at(document) = true; }
  /// A file with lines that any slice of the task may resume from.
  void AddSalvage(size_t task, const std::string& file) { tasks_.at(task).salvage.push_back(file); }

  /// Sets a task's expected cost, before Plan. Without it all documents are taken to cost the same.
  void Expect(size_t task, const Prior& prior) {
    costs_.Replace(task, {prior.estimate, prior.weight});
  }

  /// Open documents may be leased from now on. Then call GenerationsCommitted for documents that
  /// are generated and not scored: this makes their jobs.
  void Plan(const PlanSetup& setup);
  /// Gives the worker's device its number now. Without this call, the device gets it when the
  /// worker first asks. Policies that deal trials out need all numbers in advance.
  void AddWorker(Holder worker) { DeviceOf(worker); }
  /// The number of devices that work on the run from now on.
  void SetDevices(int devices) { work_.SetDevices(devices); }
  /// The number of metric processes from now on.
  void SetScoreSlots(int slots) { work_.SetScoreSlots(slots); }

  // ---- trials
  /// Leases a trial. Failed trials go first; otherwise the policy cuts a trial from the open
  /// documents. The trial is expected to end before `until_us`, when the worker's host ends (0: no
  /// limit): a trial is cut to fit. Nothing if not even one document is expected to end in time.
  std::optional<TrialLease> LeaseTrial(Holder worker, int64_t now, int64_t until_us = 0);
  /// The worker's host ends soon: returns orders to end the trial's slices after the documents that
  /// are begun. The worker's answers (Shortened) make the others open again. None for a trial that
  /// another worker computes too.
  std::vector<ShortenOrder> HandBack(Holder worker, int64_t trial, int attempt, int64_t now);
  /// Expected seconds of the shortest trial that could be leased now: of one document, or of a
  /// trial that came back. Nothing if there is no trial to lease.
  std::optional<double> shortest_s() const;
  /// The file for the generations of a slice that begins at document `first`: a path below the
  /// run's folder.
  std::string GenerationsFile(size_t task, int64_t first, int64_t trial, int attempt) const;
  /// The file for the job's scores, likewise.
  std::string ScoresFile(const MetricJob& job) const;
  /// A slice's file is complete. True if it counts: the worker holds the lease, and the slice
  /// belongs to it.
  bool SliceReported(Holder worker, int64_t trial, int attempt, size_t task,
                     DocumentRange documents);
  /// The trial is done. It counts as failed if slices are missing. False if the worker does not
  /// hold the lease.
  bool TrialDone(Holder worker, int64_t trial, int attempt);
  bool TrialFailed(Holder worker, int64_t trial, int attempt, const std::string& cause, bool retry);
  /// Whether each slice of the trial is reported.
  bool whole(int64_t trial) const { return trials_.has(trial) && AllReported(trial); }
  /// The worker's failure does not count. The trial goes to the next worker that asks, which may
  /// resume from its files. Returns false if the worker does not hold the lease.
  bool TrialGivenBack(Holder worker, int64_t trial, int attempt);
  /// Takes back each trial of the worker of which no slice was reported for too long (backups.h),
  /// whatever the worker's heartbeats say. This counts no failure. The worker keeps a trial if
  /// another worker holds its counterpart and the counterpart is not stalled. Each call that takes
  /// a trial back doubles the patience for the whole run, up to a limit. So even requests that take
  /// hours can end.
  std::vector<Grant> TakeStalled(Holder worker, int64_t now);
  /// A file that was reported for a slice is not there: documents that no other file has are open
  /// again.
  void SliceLost(size_t task, DocumentRange documents);
  /// The attempt found a request of `task` that can never be answered. The task is refused. The
  /// trial's documents of other tasks are open again, without a failure. Returns false if the
  /// worker does not hold the lease.
  bool RequestRefused(Holder worker, int64_t trial, int attempt, size_t task,
                      const std::string& cause);
  /// Refuses the task, since it can never be complete. No further document of the task is leased.
  /// Call it after Plan.
  void RefuseTask(size_t task, const std::string& cause);
  /// The worker ended the slice that begins at `first` early, at `end`: the documents behind are
  /// open again. True if there are any.
  bool Shortened(Holder worker, int64_t trial, int attempt, size_t task, int64_t first,
                 int64_t end);
  /// A request of the task has been under way on this worker's device for `seconds` and has not
  /// ended.
  void Overdue(Holder worker, size_t task, double seconds);
  /// A worker's heartbeat, about one or more of its trials. Trials that the worker does not hold
  /// are passed over.
  void Progressed(Holder worker, std::span<const TrialProgress> trials, int64_t now);
  /// A heartbeat about one trial.
  void Progressed(Holder worker, const TrialProgress& trial, int64_t now) {
    Progressed(worker, std::span(&trial, 1), now);
  }
  /// `worker` is idle and no document is open: returns orders to other workers to give documents
  /// back. Returns none if the others have begun nearly all, or if `worker` got such orders a
  /// moment ago, or if none of the documents would end before `until_us` (as in LeaseTrial).
  std::vector<ShortenOrder> Steal(Holder worker, int64_t now, int64_t until_us = 0);
  /// Seconds of work that the worker furthest behind holds and has not begun. 0 while documents are
  /// open.
  double waiting_s(int64_t now) const;
  /// An idle worker that got no trial asks again, while documents are open: a slow worker may have
  /// left them to faster ones. As LeaseTrial.
  std::optional<TrialLease> LeaseLeft(Holder worker, int64_t now, int64_t until_us = 0);
  /// Leases a backup of a trial to an idle worker, when no documents are open and none wait on
  /// other workers. Only a trial whose worker is expected to end it clearly later than the backup
  /// gets one (backups.h). The slices that are reported first count; the other worker's trial is
  /// revoked. A backup that fails is forgotten: the original has its own attempts. `until_us` as in
  /// LeaseTrial.
  std::optional<TrialLease> LeaseBackup(Holder worker, int64_t now, int64_t until_us = 0);
  /// Whether the trial is a backup. A backup's time measures nothing, since other workers computed
  /// the documents that it salvages.
  bool is_backup(int64_t trial) const;
  /// A trial's live backup, or the trial that a backup is of; -1 if there is none.
  int64_t counterpart(int64_t trial) const;
  /// Trials that were revoked since the last call.
  std::vector<RevokeOrder> TakeRevoked() { return std::exchange(revoked_, {}); }
  /// This worker's device took `device_s` for `documents`, and `longest_s` for the longest of their
  /// requests. Corrects the estimate.
  void Measured(Holder worker, size_t task, int64_t documents, double device_s, double longest_s);
  void WorkerHeard(Holder worker, int64_t now) { trials_table_.Heard(worker, now); }
  /// `suspect`: see LeaseTable::Lose.
  void WorkerLost(Holder worker, const std::string& cause, Suspect suspect = Suspect::kItem);

  /// The generations of these documents are durable in `file`. Queues their scoring.
  void GenerationsCommitted(size_t task, const std::vector<int64_t>& documents,
                            const std::string& file, int64_t trial, int attempt);

  // ---- metric jobs
  /// Leases the first job, or the first whose generations file `fits`. It is expected to end before
  /// `until_us`, when the metric process's host ends (0: no limit).
  std::optional<MetricJob> LeaseJob(
      Holder metric_process, int64_t now,
      const std::function<bool(const std::string& generations)>& fits = {}, int64_t until_us = 0);
  /// The job's scores file is complete. Returns the job if the report counts. If the file covers
  /// only the documents before `end`, the returned job ends at `end`, and the rest becomes a new
  /// job.
  std::optional<MetricJob> JobDone(Holder metric_process, int64_t job, int attempt,
                                   int64_t end = 0);
  /// False if the metric process does not hold the job. If `retry` is false, the task itself cannot
  /// be scored and is refused.
  bool JobFailed(Holder metric_process, int64_t job, int attempt, const std::string& cause,
                 bool retry);
  /// A judge gave no verdict on these documents: they stay without a score.
  void Unscored(size_t task, DocumentRange documents, const std::string& cause);
  /// The task's judge is down: its jobs that are not leased, and those to come, are given up.
  /// Returns the documents of the former.
  std::vector<DocumentRange> StopJudging(size_t task, const std::string& cause);
  /// Whether StopJudging was called for the task.
  bool judging_stopped(size_t task) const { return tasks_.at(task).judging_stopped.has_value(); }
  /// The failure does not count: the job goes to the next metric process that asks. Returns false
  /// if the process does not hold the lease.
  bool JobGivenBack(Holder metric_process, int64_t job, int attempt) {
    return jobs_table_.GiveBack(metric_process, job, attempt);
  }
  /// The scores file that was reported for the job is not there: its documents are scored again.
  void ScoresLost(const MetricJob& job);
  void MeasuredScoring(size_t task, int64_t documents, double score_s);
  void MetricProcessHeard(Holder metric_process, int64_t now) {
    jobs_table_.Heard(metric_process, now);
  }
  void MetricProcessLost(Holder metric_process, const std::string& cause,
                         Suspect suspect = Suspect::kItem);
  /// The scores of these documents are durable.
  void ScoresCommitted(size_t task, const std::vector<int64_t>& documents);

  // ---- looking
  std::vector<Holder> SilentWorkers(int64_t now) const { return trials_table_.Silent(now); }
  std::vector<Holder> SilentMetricProcesses(int64_t now) const { return jobs_table_.Silent(now); }
  const LeaseTable& trials() const { return trials_table_; }
  const LeaseTable& jobs() const { return jobs_table_; }
  const std::vector<MachineTask>& tasks() const { return specs_; }
  int64_t generated(size_t task) const;
  /// Documents by task that workers report as done and that are not committed yet; for people.
  std::vector<int64_t> under_way() const;
  /// Documents of leased trials that are not committed, those under way included.
  int64_t leased_documents() const;
  /// About how many documents of leased slices earlier attempts had answered.
  int64_t salvaged_under_way() const;
  int64_t scored(size_t task) const;
  bool task_finished(size_t task) const { return scored(task) == specs_.at(task).documents; }
  /// Whether there is a trial to lease.
  bool has_trials() const { return work_.documents() > 0 || trials_table_.queued() > 0; }
  /// Expected device seconds of the open documents.
  double open_s() const { return work_.device_s(); }
  /// Whether no document is open or leased.
  bool trials_idle() const { return work_.documents() == 0 && trials_table_.idle(); }
  bool idle() const { return trials_idle() && jobs_table_.idle(); }
  /// The task's expected cost as of now.
  TaskEstimate estimate(size_t task) const { return costs_.Now(task); }
  /// The same as the policy knows it: corrected in steps.
  const TaskEstimate& expected(size_t task) const { return work_.estimate(task); }
  /// Whether idle workers may steal from others.
  bool steals() const { return policy_->backs_up_stragglers(); }
  /// Whether every document is scored.
  bool complete() const;
  /// Whether every task is scored or refused, and at least one is refused: another attempt would
  /// change nothing.
  bool refused() const;
  /// Everything that was given up.
  std::vector<Missing> missing() const;

 private:
  struct TaskState {
    std::vector<bool> generated;
    std::vector<bool> scored;
    int64_t generated_count = 0;
    int64_t scored_count = 0;
    std::vector<std::string> salvage;
    std::optional<std::string> refused;          // the reason
    std::optional<std::string> judging_stopped;  // likewise
  };
  struct SliceState {
    size_t task = 0;
    DocumentRange documents;
    bool reported = false;
    std::vector<std::string> salvage;
  };
  struct TrialState {
    std::vector<SliceState> slices;
    int attempt = 0;            // that was leased last
    int64_t requests_done = 0;  // by that attempt
    int64_t salvaged = 0;       // of these, in slices that are not reported
    int64_t since_us = 0;       // when its oldest request reached the engine, or when it was leased
    int64_t quiet_us = 0;     // when it was leased, or a slice of it was last known to be reported
    bool slice_came = false;  // since then
    int64_t shorten_us = 0;   // when the worker was told to shorten it, without an answer; 0: never
    bool backup = false;
    int backups = 0;           // backups that were made of it
    int64_t counterpart = -1;  // its live backup, or the trial that it is a backup of
  };
  std::optional<int64_t> CutTrial(Holder worker, double seconds);
  bool IsLong(const TaskEstimate& estimate) const;
  void NoteSpeed(Holder worker, size_t task, int64_t documents, double device_s, double longest_s);
  bool IsSlow(int device) const;
  double ExcessOf(Holder worker);
  std::optional<Cut> ProbeOf(Holder worker, const std::vector<Cut>& cuts);
  std::vector<size_t> ProbeTasks() const;
  double SecondsOfSlow(Holder worker, int64_t now);
  int64_t& WaitsSinceOf(Holder worker);
  double HeldSeconds(Holder worker) const;
  double SecondsFor(Holder worker, int64_t now, int64_t until_us);
  double SlownessOf(Holder worker);
  bool EndsInTime(const Theft& theft, Holder worker, double seconds);
  double SecondsOf(const TrialState& trial, double slow) const;
  int64_t FreePlaces(Holder worker) const;
  void FitIntoPlaces(Holder worker, std::vector<Cut>* cuts) const;
  int DeviceOf(Holder worker);
  std::vector<WaitingDocuments> WaitingOf(Holder worker, int64_t now) const;
  TrialLease LeaseOf(const Grant& grant, int64_t now);
  bool NoteProgress(Holder worker, const TrialProgress& trial, int64_t now);
  void NoteBegun(Holder worker, int64_t now);
  void ReportBegun(Holder worker, int64_t now);
  void ReportUntold(int64_t now);
  int64_t& StealWaitOf(Holder worker);
  FreshSeconds FreshOf(const TrialState& trial) const;
  bool IsCommand(const TrialState& trial) const;
  bool IsStalled(Holder worker, const TrialState& trial, int64_t now) const;
  void Supersede(int64_t trial, size_t task, DocumentRange documents);
  void Revoke(int64_t trial);
  void EndBackup(int64_t trial, int attempt);
  void Part(int64_t trial);
  std::string FileOf(const SliceState& slice, int64_t trial, int attempt) const;
  static bool AllReported(const TrialState& trial);
  bool AllReported(int64_t trial) const { return AllReported(trials_.at(trial)); }
  bool CompleteTrial(Holder worker, int64_t trial, int attempt);
  // Lets the next attempt resume from the half-written files of an attempt that ended.
  void KeepPartsOf(int64_t trial, int attempt);
  void Reopen(const SliceState& slice, const std::string& file);
  void AddJob(size_t task, DocumentRange documents, const std::string& file, int64_t trial,
              int attempt);
  // Queues the next job of a judged task, if none is queued or leased.
  void QueueJudged();

  std::vector<MachineTask> specs_;
  std::vector<TaskState> tasks_;
  Numbered<TrialState> trials_;        // those that are neither done nor revoked
  Numbered<MetricJob> jobs_;           // those that are not done
  std::deque<int64_t> judged_;         // jobs of judged tasks that are not queued yet
  std::optional<int64_t> judged_job_;  // the one that was queued last
  std::vector<std::pair<MetricJob, std::string>> unscored_;  // documents without a verdict, and why
  OpenWork work_{1, 1, 1};
  std::unique_ptr<Policy> policy_;
  Corrections costs_;
  std::vector<int> device_of_;     // by worker; -1: it never asked
  std::vector<Holder> worker_of_;  // by device
  int stalls_ = 0;                 // calls of TakeStalled that took trials back
  Stealing stealing_{0};
  Backups backups_;
  DeviceSpeeds speeds_;
  std::vector<size_t> probes_of_;  // by device: probes that it was given
  double lease_s_ = 0;
  std::vector<bool>
      untold_of_;  // by device: its report to backups_ waits until a worker asks for a backup
  std::vector<int> untold_;  // those devices
  std::vector<RevokeOrder> revoked_;
  // The time until which a worker waits for documents that others give back
  std::vector<int64_t> steal_wait_us_;  // by worker
  // Since when a slow worker leaves the open documents to others; 0: it does not
  std::vector<int64_t> waits_since_us_;  // by worker
  LeaseTable trials_table_;
  LeaseTable jobs_table_;
  int64_t next_trial_ = 0;
  int64_t next_job_ = 0;
};

}  // namespace evald

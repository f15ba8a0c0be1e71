#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/schedule/lease_table.h"
#include "orchestrator/schedule/plan.h"

namespace evald {

/// A task of a run as the machine sees it.
struct MachineTask {
  std::string name;
  int64_t documents = 0;
  double cost_per_document = 1;
  bool slow_scoring = false;
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

/// The state of one run: which documents are generated and scored, who works on what. A plain value:
/// events and times in, consequences out; no clock, no I/O. The coordinator around it carries them
/// out. Documents count from when their commitment is durable, not from when they are reported.
class RunMachine {
 public:
  RunMachine(LeaseLimits trial_limits, LeaseLimits job_limits)
      : trials_table_(trial_limits), jobs_table_(job_limits) {}

  void SetTasks(std::vector<MachineTask> tasks);

  // What an earlier life of the run left, before Plan.
  void AdoptGenerations(size_t task, int64_t document) { tasks_.at(task).generated.at(document) = true; }
  void AdoptScores(size_t task, int64_t document) { tasks_.at(task).scored.at(document) = true; }
  /// A file whose lines may be resumed by any slice of the task.
  void AddSalvage(size_t task, const std::string& file) { tasks_.at(task).salvage.push_back(file); }

  /// Cuts what is open into trials numbered from `first_trial`. Documents that are generated but not
  /// scored become jobs through GenerationsCommitted.
  /// Jobs are numbered from `first_job`: a metric process that outlives the orchestrator has seen the
  /// numbers of the life before.
  void Plan(const PlanOptions& options, int64_t first_trial, int64_t first_job = 0);

  // ---- trials
  std::optional<TrialLease> LeaseTrial(const std::string& worker, int64_t now);
  /// A slice's file is complete: true when it counts (the attempt holds the lease, the slice is its).
  bool SliceReported(int64_t trial, int attempt, size_t task, DocumentRange documents);
  /// False when the attempt does not hold the lease. With slices missing it is a failure.
  bool TrialDone(int64_t trial, int attempt);
  bool TrialFailed(int64_t trial, int attempt, const std::string& cause, bool retry);
  void WorkerHeard(const std::string& worker, int64_t now) { trials_table_.Heard(worker, now); }
  void WorkerLost(const std::string& worker, const std::string& cause);

  /// These documents' generations are durable in `file`. Queues their scoring.
  void GenerationsCommitted(size_t task, const std::vector<int64_t>& documents,
                            const std::string& file, int64_t trial, int attempt);

  // ---- metric jobs
  /// The first job, or the first whose generations file `fits`.
  std::optional<MetricJob> LeaseJob(const std::string& scorer, int64_t now,
                                    const std::function<bool(const std::string& generations)>& fits = {});
  /// The job's scores file is complete: the job when it counts.
  std::optional<MetricJob> JobDone(int64_t job, int attempt);
  /// False when the attempt does not hold the job.
  bool JobFailed(int64_t job, int attempt, const std::string& cause, bool retry);
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
  int64_t scored(size_t task) const;
  bool task_finished(size_t task) const { return scored(task) == specs_.at(task).documents; }
  /// No trial or job is queued or leased.
  bool idle() const { return trials_table_.idle() && jobs_table_.idle(); }
  /// Every document is scored.
  bool complete() const;
  /// What was given up. Empty when nothing was.
  std::vector<Missing> missing() const;

 private:
  struct TaskState {
    std::vector<bool> generated;
    std::vector<bool> scored;
    int64_t generated_count = 0;
    int64_t scored_count = 0;
    std::vector<std::string> salvage;
  };
  struct SliceState {
    size_t task = 0;
    DocumentRange documents;
    bool reported = false;
    std::vector<std::string> salvage;
  };
  std::string FileOf(const SliceState& slice, int64_t trial, int attempt) const;
  bool AllReported(int64_t trial) const;
  // The half-written files of an attempt that ended can be resumed by the next one.
  void KeepPartsOf(int64_t trial, int attempt);
  void AddJob(size_t task, DocumentRange documents, const std::string& file, int64_t trial, int attempt);

  std::vector<MachineTask> specs_;
  std::vector<TaskState> tasks_;
  std::map<int64_t, std::vector<SliceState>> trials_;
  std::map<int64_t, MetricJob> jobs_;
  LeaseTable trials_table_;
  LeaseTable jobs_table_;
  int64_t next_job_ = 0;
};

}  // namespace evald

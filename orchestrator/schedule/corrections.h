#pragma once

#include <cstdint>
#include <vector>

#include "orchestrator/schedule/estimate.h"
#include "orchestrator/schedule/open_work.h"

namespace evald {

/// The expected costs of a run's tasks, corrected by what is measured while the run goes on. The
/// OpenWork that a policy decides from is told of a correction once a share of the task's documents
/// (kLearnShare) was seen: each correction makes the policy's order anew. Daemon and simulator use
/// this one rule. A plain value.
class Corrections {
 public:
  /// Tasks are numbered in the order in which they are added, like those of the OpenWork.
  void Add(RunningEstimate estimate) { tasks_.push_back({std::move(estimate), 0}); }
  /// Replaces the prior. Call it before anything was measured.
  void Replace(size_t task, RunningEstimate estimate) {
    tasks_.at(task).estimate = std::move(estimate);
  }

  /// `documents` took `device_s` in all. Their longest request took `longest_s`.
  void Generated(size_t task, int64_t documents, double device_s, double longest_s, OpenWork* work);
  /// Scoring `documents` took `score_s` in all, in seconds of a slot of the metric pool.
  void Scored(size_t task, int64_t documents, double score_s, OpenWork* work);
  /// A request of the task has been under way for `seconds` and has not ended. Changes the estimate
  /// only if that exceeds the expected longest request by the factor kOverdueGrowth.
  void Overdue(size_t task, double seconds, OpenWork* work);

  size_t tasks() const { return tasks_.size(); }
  TaskEstimate Now(size_t task) const { return tasks_.at(task).estimate.Now(); }
  /// Now(task).device_s
  double device_s(size_t task) const { return tasks_.at(task).estimate.device_s(); }
  const TaskEstimate& prior(size_t task) const { return tasks_.at(task).estimate.prior(); }
  /// The longest request of those that ended. A request that is still under way on a slow device
  /// does not count.
  double ended_request_s(size_t task) const { return tasks_.at(task).estimate.ended_request_s(); }

 private:
  struct Task {
    RunningEstimate estimate;
    int64_t untold = 0;  // documents measured since the work was last told
  };
  void Saw(size_t task, int64_t documents, OpenWork* work);

  std::vector<Task> tasks_;
};

}  // namespace evald

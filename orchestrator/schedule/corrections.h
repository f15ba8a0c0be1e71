#pragma once

#include <cstdint>
#include <vector>

#include "orchestrator/schedule/estimate.h"
#include "orchestrator/schedule/open_work.h"

namespace evald {

/// What the tasks of a run are expected to cost, corrected by what is seen of them while it goes
/// on, and when the OpenWork that a policy decides from is told: its order is made anew at each
/// correction, so not for every few documents. The one rule of daemon and simulator. A plain value.
class Corrections {
 public:
  /// Tasks are numbered in the order in which they are added, as those of the OpenWork.
  void Add(RunningEstimate estimate) { tasks_.push_back({std::move(estimate), 0}); }
  /// Another prior, before anything is seen.
  void Replace(size_t task, RunningEstimate estimate) {
    tasks_.at(task).estimate = std::move(estimate);
  }

  /// `documents` took `device_s` in all, the longest of their requests `longest_s`.
  void Generated(size_t task, int64_t documents, double device_s, double longest_s, OpenWork* work);
  /// `documents` took `score_s` of a slot of the metric pool in all.
  void Scored(size_t task, int64_t documents, double score_s, OpenWork* work);
  /// A request of the task is under way for so long, and has not ended. Worth telling when it is
  /// longer than any was expected to take, by kOverdueGrowth.
  void Overdue(size_t task, double seconds, OpenWork* work);

  size_t tasks() const { return tasks_.size(); }
  TaskEstimate Now(size_t task) const { return tasks_.at(task).estimate.Now(); }
  const TaskEstimate& prior(size_t task) const { return tasks_.at(task).estimate.prior(); }
  /// The longest request as far as those say that have ended: one that a slow device has is not in
  /// it.
  double ended_request_s(size_t task) const { return tasks_.at(task).estimate.ended_request_s(); }

 private:
  struct Task {
    RunningEstimate estimate;
    int64_t untold = 0;  // documents seen since the work was told
  };
  void Saw(size_t task, int64_t documents, OpenWork* work);

  std::vector<Task> tasks_;
};

}  // namespace evald

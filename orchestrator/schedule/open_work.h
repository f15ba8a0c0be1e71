#pragma once

#include <cstdint>
#include <vector>

#include "orchestrator/schedule/estimate.h"

namespace evald {

/// A stretch of one task's documents, [first, end).
struct DocumentRange {
  int64_t first = 0;
  int64_t end = 0;
  int64_t size() const { return end - first; }
  bool operator==(const DocumentRange&) const = default;
};

/// The documents of a run that nobody works on yet, task by task in the run's order, and what each
/// task is expected to cost. What a policy decides from. A plain value.
class OpenWork {
 public:
  /// `devices` compute for the run, each with `places` requests under way at once; `score_slots` score.
  OpenWork(int devices, int places, int score_slots)
      : devices_(devices), places_(places), score_slots_(score_slots) {}

  /// Tasks are numbered in the order in which they are added. Ranges are in order and disjoint.
  void Add(const TaskEstimate& estimate, std::vector<DocumentRange> open);
  /// From now on the task is expected to cost this.
  void Expect(size_t task, const TaskEstimate& estimate);
  void SetDevices(int devices) { devices_ = devices; }

  /// Takes the first `documents` open documents of a task, or as many as are left.
  std::vector<DocumentRange> Take(size_t task, int64_t documents);
  /// Gives documents back, to be the next.
  void PutBack(size_t task, const DocumentRange& range);

  int devices() const { return devices_; }
  int places() const { return places_; }
  int score_slots() const { return score_slots_; }
  size_t tasks() const { return tasks_.size(); }
  const TaskEstimate& estimate(size_t task) const { return tasks_[task].estimate; }
  int64_t open(size_t task) const { return tasks_[task].documents; }
  /// Its open documents, the next ones last.
  const std::vector<DocumentRange>& ranges(size_t task) const { return tasks_[task].ranges; }
  int64_t documents() const { return documents_; }
  /// Device seconds that all open documents are expected to take.
  double device_s() const { return device_s_; }
  /// Grows whenever what is open or expected changes other than by Take: an order made before is out of
  /// date.
  int64_t revision() const { return revision_; }

 private:
  struct Task {
    TaskEstimate estimate;
    std::vector<DocumentRange> ranges;  // the next one last
    int64_t documents = 0;
  };
  double CostOf(const Task& task) const;

  int devices_;
  int places_;
  int score_slots_;
  std::vector<Task> tasks_;
  int64_t documents_ = 0;
  double device_s_ = 0;
  int64_t revision_ = 0;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orchestrator/schedule/estimate.h"
#include "orchestrator/schedule/work_tree.h"

namespace evald {

/// A stretch of one task's documents, [first, end).
struct DocumentRange {
  int64_t first = 0;
  int64_t end = 0;
  int64_t size() const { return end - first; }
  bool operator==(const DocumentRange&) const = default;
};

/// The documents of a run that nobody works on yet, by task in the run's order, and the expected
/// cost of each task. Policies decide from it. A plain value; every change takes log n steps.
class OpenWork {
 public:
  /// `devices` compute for the run, each with `places` requests under way at once. `score_slots`
  /// score.
  OpenWork(int devices, int places, int score_slots)
      : devices_(devices), places_(places), score_slots_(score_slots) {}

  /// Tasks are numbered in the order in which they are added. Ranges are in order and disjoint.
  /// Throws Error(kInternal) if a number in the estimate is not finite or is negative.
  void Add(const TaskEstimate& estimate, std::vector<DocumentRange> open);
  /// Replaces the task's expected cost. Throws like Add.
  void Expect(size_t task, const TaskEstimate& estimate);
  void SetDevices(int devices) { devices_ = devices; }
  /// Changes the time that follows each task's documents.
  void SetScoreSlots(int slots);

  /// Takes the next `documents` open documents of a task, or as many as are left.
  std::vector<DocumentRange> Take(size_t task, int64_t documents);
  /// Puts documents back. They are the next to be taken.
  void PutBack(size_t task, const DocumentRange& range);

  int devices() const { return devices_; }
  int places() const { return places_; }
  int score_slots() const { return score_slots_; }
  size_t tasks() const { return tasks_.size(); }
  const TaskEstimate& estimate(size_t task) const { return tasks_[task].estimate; }
  int64_t open(size_t task) const { return tasks_[task].documents; }
  /// Open documents of the task, the next ones last.
  const std::vector<DocumentRange>& ranges(size_t task) const { return tasks_[task].ranges; }
  /// The first task from `task` on with open documents; tasks() if there is none.
  size_t FirstOpen(size_t task) const { return tree_.FirstOpen(task); }
  int64_t documents() const { return tree_.sum().documents; }
  /// Expected device seconds of all open documents.
  double device_s() const { return tree_.sum().device_s; }

  /// The number of changes of open documents and estimates so far.
  int64_t revision() const { return forgotten_ + static_cast<int64_t>(changed_.size()); }
  /// The tasks that changed since `revision`, once for each change. Nothing if those changes are no
  /// longer kept: any task may have changed.
  std::optional<std::span<const size_t>> ChangedSince(int64_t revision) const;

 private:
  struct Task {
    TaskEstimate estimate;
    std::vector<DocumentRange> ranges;  // the next one last
    int64_t documents = 0;
  };
  void Changed(size_t task);

  int devices_;
  int places_;
  int score_slots_;
  std::vector<Task> tasks_;
  WorkTree tree_;
  std::vector<size_t> changed_;  // the latest changes
  int64_t forgotten_ = 0;        // the number of changes before those
};

}  // namespace evald

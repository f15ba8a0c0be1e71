#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace evald {

/// A piece of scoring: documents of a slice, on one slot.
struct ScoreJob {
  size_t task = 0;
  int64_t documents = 0;
  double seconds = 0;
  bool slow = false;
};

/// The slots of the metric pool: what runs programs goes first, then what came first, as in a run.
class ScorePool {
 public:
  explicit ScorePool(int slots) : free_(slots), slots_(slots) {}

  void Add(const ScoreJob& job) { waiting_.push({job, next_++}); }
  /// Takes the next job onto a free slot; false when there is none of either.
  bool Begin(ScoreJob* job);
  void End() { ++free_; }
  bool idle() const { return waiting_.empty() && free_ == slots_; }

 private:
  struct Waiting {
    ScoreJob job;
    int64_t order = 0;
    bool operator<(const Waiting& other) const {
      return job.slow != other.job.slow ? other.job.slow : order > other.order;
    }
  };
  std::priority_queue<Waiting> waiting_;
  int free_;
  int slots_;
  int64_t next_ = 0;
};

}  // namespace evald

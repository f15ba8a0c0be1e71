#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
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

/// The slots of the metric pool, numbered host by host: what runs programs goes first, then what
/// came first, as in a run; the slot that was free for longest takes it.
class ScorePool {
 public:
  explicit ScorePool(int slots);

  void Add(const ScoreJob& job) { waiting_.push({job, next_++}); }
  /// Takes the next job onto a free slot and says which; nothing when there is none of either.
  std::optional<int> Begin(ScoreJob* job);
  void End(int slot);
  /// The slots from `first` on are gone; whoever has jobs on them adds those again, and does not
  /// end them.
  void Remove(int first);
  bool idle() const { return waiting_.empty() && free_.size() == static_cast<size_t>(slots_); }

 private:
  struct Waiting {
    ScoreJob job;
    int64_t order = 0;
    bool operator<(const Waiting& other) const {
      return job.slow != other.job.slow ? other.job.slow : order > other.order;
    }
  };
  std::priority_queue<Waiting> waiting_;
  std::deque<int> free_;
  int slots_;
  int64_t next_ = 0;
};

}  // namespace evald

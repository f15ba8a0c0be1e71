#pragma once

#include <cstddef>
#include <deque>
#include <optional>

namespace evald {

/// The slots of the metric pool, numbered host by host. The slot that was free for longest takes
/// the next job.
class ScorePool {
 public:
  explicit ScorePool(int slots);

  /// Takes a free slot; nothing if there is none.
  std::optional<int> Begin();
  void End(int slot);
  /// The slots from `first` on are gone. Jobs on them never end.
  void Remove(int first);
  int slots() const { return slots_; }
  bool idle() const { return free_.size() == static_cast<size_t>(slots_); }

 private:
  std::deque<int> free_;
  int slots_;
};

}  // namespace evald

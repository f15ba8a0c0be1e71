#include "orchestrator/simulate/score_pool.h"

#include <numeric>

namespace evald {

ScorePool::ScorePool(int slots) : free_(static_cast<size_t>(slots)), slots_(slots) {
  std::iota(free_.begin(), free_.end(), 0);
}

std::optional<int> ScorePool::Begin() {
  if (free_.empty()) return std::nullopt;
  const int slot = free_.front();
  free_.pop_front();
  return slot;
}

void ScorePool::End(int slot) {
  if (slot < slots_) free_.push_back(slot);
}

void ScorePool::Remove(int first) {
  slots_ = first;
  std::erase_if(free_, [first](int slot) { return slot >= first; });
}

}  // namespace evald

#include "tokenizer/symbols.h"

#include <algorithm>
#include <limits>

namespace evald::tok {
namespace {

constexpr Merge kNever = {std::numeric_limits<int32_t>::max(), -1};

Merge MergeOf(const MergeTable& merges, int32_t left, int32_t right) {
  const Merge* found = merges.Find(left, right);
  return found == nullptr ? kNever : *found;
}

}  // namespace

void Symbols::MergeShort(const MergeTable& merges) {
  size_t count = ids_.size();
  if (count < 2) return;
  pairs_.resize(count - 1);
  for (size_t i = 0; i + 1 < count; ++i) pairs_[i] = MergeOf(merges, ids_[i], ids_[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs_[i].rank < pairs_[best].rank) best = i;
    }
    if (pairs_[best].id < 0) break;
    ids_[best] = pairs_[best].id;
    --count;
    for (size_t i = best + 1; i < count; ++i) ids_[i] = ids_[i + 1];
    for (size_t i = best; i + 1 < count; ++i) pairs_[i] = pairs_[i + 1];
    if (best > 0) pairs_[best - 1] = MergeOf(merges, ids_[best - 1], ids_[best]);
    if (best + 1 < count) pairs_[best] = MergeOf(merges, ids_[best], ids_[best + 1]);
  }
  ids_.resize(count);
}

void Symbols::Consider(const MergeTable& merges, int32_t left) {
  if (left < 0) return;
  const int32_t right = next_[static_cast<size_t>(left)];
  if (right < 0) return;
  const Merge* found =
      merges.Find(ids_[static_cast<size_t>(left)], ids_[static_cast<size_t>(right)]);
  if (found == nullptr) return;
  heap_.push_back({found->rank, left, found->id});
  std::push_heap(heap_.begin(), heap_.end());
}

// Merges the symbol at `at` with the next one.
void Symbols::MergeAt(int32_t at, int32_t id) {
  const int32_t gone = next_[static_cast<size_t>(at)];
  const int32_t behind = next_[static_cast<size_t>(gone)];
  ids_[static_cast<size_t>(at)] = id;
  ids_[static_cast<size_t>(gone)] = -1;
  next_[static_cast<size_t>(at)] = behind;
  if (behind >= 0) previous_[static_cast<size_t>(behind)] = at;
}

void Symbols::MergeLong(const MergeTable& merges) {
  const auto count = static_cast<int32_t>(ids_.size());
  previous_.resize(ids_.size());
  next_.resize(ids_.size());
  for (int32_t i = 0; i < count; ++i) {
    previous_[static_cast<size_t>(i)] = i - 1;
    next_[static_cast<size_t>(i)] = i + 1 < count ? i + 1 : -1;
  }
  heap_.clear();
  for (int32_t i = 0; i < count; ++i) Consider(merges, i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    const int32_t left = ids_[static_cast<size_t>(best.at)];
    const int32_t right_at = next_[static_cast<size_t>(best.at)];
    if (left < 0 || right_at < 0) continue;
    const Merge* found = merges.Find(left, ids_[static_cast<size_t>(right_at)]);
    if (found == nullptr || found->id != best.id) continue;
    MergeAt(best.at, best.id);
    Consider(merges, previous_[static_cast<size_t>(best.at)]);
    Consider(merges, best.at);
  }
  std::erase(ids_, -1);
}

}  // namespace evald::tok

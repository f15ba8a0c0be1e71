#include "tokenizer/merge_table.h"

#include <bit>
#include <utility>

namespace evald::tok {

void MergeTable::Reserve(size_t merges) {
  const size_t wanted = std::bit_ceil(merges * 2 + kSlotsMin);
  if (wanted <= slots_.size()) return;
  std::vector<Slot> old(wanted);
  old.swap(slots_);
  count_ = 0;
  for (const Slot& slot : old) {
    if (slot.key == kEmpty) continue;
    Set(static_cast<int32_t>(slot.key >> 32), static_cast<int32_t>(slot.key & 0xFFFFFFFF),
        slot.merge);
  }
}

void MergeTable::Set(int32_t left, int32_t right, Merge merge) {
  Reserve(count_ + 1);
  const uint64_t key = Key(left, right);
  size_t at = Home(key);
  while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  if (slots_[at].key == kEmpty) ++count_;
  slots_[at] = {key, merge};
}

}  // namespace evald::tok

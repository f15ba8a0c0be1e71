#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evald::tok {

/// The result of merging two neighbouring symbols.
struct Merge {
  int32_t rank = 0;  ///< the lowest rank in a word is merged first
  int32_t id = 0;    ///< the token that replaces the two
};

/// The merges of a model by the ids of their two symbols: open addressing, at most half full.
/// Immutable once filled; any thread may read.
class MergeTable {
 public:
  MergeTable() : slots_(kSlotsMin) {}

  void Reserve(size_t merges);
  /// If a pair is set again, the later merge counts.
  void Set(int32_t left, int32_t right, Merge merge);

  /// Null for a pair that is never merged.
  const Merge* Find(int32_t left, int32_t right) const {
    const uint64_t key = Key(left, right);
    for (size_t at = Home(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].key == key) return &slots_[at].merge;
      if (slots_[at].key == kEmpty) return nullptr;
    }
  }

 private:
  static constexpr size_t kSlotsMin = 16;
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids are not negative

  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };

  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t Home(uint64_t key) const {
    const uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15;
    return (mixed ^ mixed >> 32) & (slots_.size() - 1);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace evald::tok

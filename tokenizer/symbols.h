#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/merge_table.h"

namespace evald::tok {

/// The symbols of a word during its merges. The buffers are used again. One thread.
class Symbols {
 public:
  void Clear() { ids_.clear(); }
  void Add(int32_t id) { ids_.push_back(id); }
  const std::vector<int32_t>& ids() const { return ids_; }

  /// Merges the pair of neighbours with the lowest rank, leftmost first, until no pair has a rank.
  /// A short word is merged by a quadratic algorithm, which is faster there, a long word by a heap
  /// in O(n log n). With `by_heap` the heap is always used. Only the heap gives the result of the
  /// tokenizers library if a merge may leave the spelling of its left symbol unchanged (with a
  /// continuing_subword_prefix that is itself a token).
  void MergeAll(const MergeTable& merges, bool by_heap) {
    constexpr size_t kShortMax = 40;
    if (ids_.size() <= kShortMax && !by_heap) {
      MergeShort(merges);
    } else {
      MergeLong(merges);
    }
  }

 private:
  // A merge that may be due.
  struct Candidate {
    int32_t rank;
    int32_t at;
    int32_t id;
    // A heap gives the lowest rank first, then the leftmost.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void MergeShort(const MergeTable& merges);
  void MergeLong(const MergeTable& merges);
  void Consider(const MergeTable& merges, int32_t left);
  void MergeAt(int32_t at, int32_t id);

  std::vector<int32_t> ids_;       // -1 for a symbol that was merged away
  std::vector<Merge> pairs_;       // of a symbol and the next one, in a short word
  std::vector<int32_t> previous_;  // in a long word; -1 for none
  std::vector<int32_t> next_;
  std::vector<Candidate> heap_;
};

}  // namespace evald::tok

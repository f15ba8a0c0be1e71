#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/merge_table.h"

namespace evald::tok {

/// The symbols of a word while they are merged. Its buffers are used again. One thread.
class Symbols {
 public:
  void Clear() { ids_.clear(); }
  void Add(int32_t id) { ids_.push_back(id); }
  const std::vector<int32_t>& ids() const { return ids_; }

  /// Merges the pair of neighbours with the lowest rank, leftmost first, until no pair has one.
  /// Quadratic for a short word, which is faster there, O(n log n) for a long one. `by_heap` takes
  /// the long way always: where a merge may leave its left symbol's spelling as it was (with a
  /// continuing_subword_prefix that is a token itself) only that is what the tokenizers library
  /// does.
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
    // The lowest rank comes first out of a heap, then the leftmost.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void MergeShort(const MergeTable& merges);
  void MergeLong(const MergeTable& merges);
  void Consider(const MergeTable& merges, int32_t left);
  void MergeAt(int32_t at, int32_t id);

  std::vector<int32_t> ids_;       // for a symbol that is gone -1
  std::vector<Merge> pairs_;       // of a symbol and the one behind it, in a short word
  std::vector<int32_t> previous_;  // in a long one: -1 for none
  std::vector<int32_t> next_;
  std::vector<Candidate> heap_;
};

}  // namespace evald::tok

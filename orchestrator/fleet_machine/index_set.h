#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace evald {

/// A set of small indices: a bit for each. Insert and Erase take constant time and allocate nothing
/// once the largest index was there. NextFrom looks at 64 indices in a step.
class IndexSet {
 public:
  void Insert(size_t index) {
    const size_t at = index / kBits;
    if (at >= words_.size()) words_.resize(at + 1, 0);
    size_ += (words_[at] & Bit(index)) == 0 ? 1 : 0;
    words_[at] |= Bit(index);
  }
  void InsertAll(const IndexSet& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size(), 0);
    for (size_t at = 0; at < other.words_.size(); ++at) {
      size_ += static_cast<size_t>(std::popcount(other.words_[at] & ~words_[at]));
      words_[at] |= other.words_[at];
    }
  }
  void Erase(size_t index) {
    if (!has(index)) return;
    words_[index / kBits] &= ~Bit(index);
    --size_;
  }
  void Clear() {
    words_.assign(words_.size(), 0);
    size_ = 0;
  }

  bool has(size_t index) const {
    return index / kBits < words_.size() && (words_[index / kBits] & Bit(index)) != 0;
  }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  /// The least index of the set that is `index` or larger.
  std::optional<size_t> NextFrom(size_t index) const {
    if (size_ == 0) return std::nullopt;
    uint64_t mask = ~uint64_t{0} << index % kBits;
    for (size_t at = index / kBits; at < words_.size(); ++at, mask = ~uint64_t{0}) {
      if (const uint64_t word = words_[at] & mask; word != 0)
        return at * kBits + static_cast<size_t>(std::countr_zero(word));
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kBits = 64;
  static uint64_t Bit(size_t index) { return uint64_t{1} << index % kBits; }

  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

}  // namespace evald

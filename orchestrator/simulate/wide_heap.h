#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace evald {

/// A priority queue whose top is the least value by `Less`. Each value has four children. So a heap
/// of millions of values that are far apart in memory has half the levels of a binary heap, and a
/// step waits for memory half as often.
template <typename T, typename Less = std::less<T>>
class WideHeap {
 public:
  WideHeap() = default;
  explicit WideHeap(std::vector<T> values) : values_(std::move(values)) {
    for (size_t at = values_.size() / kChildren + 1; at-- > 0;) {
      if (at < values_.size()) Sink(at, values_[at]);
    }
  }

  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  const T& top() const { return values_.front(); }

  void Push(const T& value) {
    values_.push_back(value);
    size_t at = values_.size() - 1;
    while (at > 0) {
      const size_t parent = (at - 1) / kChildren;
      if (!less_(value, values_[parent])) break;
      values_[at] = values_[parent];
      at = parent;
    }
    values_[at] = value;
  }
  /// Removes and returns the top. The heap has one.
  T Pop() {
    const T least = values_.front();
    const T last = values_.back();
    values_.pop_back();
    if (!values_.empty()) Sink(0, last);
    return least;
  }
  /// The same as Pop and then Push, in one pass.
  void ReplaceTop(const T& value) { Sink(0, value); }

 private:
  static constexpr size_t kChildren = 4;

  // Puts `value` into the subtree of `at`, whose own value is given up.
  void Sink(size_t at, const T value) {
    for (;;) {
      const size_t first = at * kChildren + 1;
      if (first >= values_.size()) break;
      const size_t end = std::min(first + kChildren, values_.size());
      size_t least = first;
      for (size_t child = first + 1; child < end; ++child) {
        if (less_(values_[child], values_[least])) least = child;
      }
      if (!less_(values_[least], value)) break;
      values_[at] = values_[least];
      at = least;
    }
    values_[at] = value;
  }

  std::vector<T> values_;
  [[no_unique_address]] Less less_;
};

}  // namespace evald

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace evald {

/// Values by number, where numbers are given out one after another and erased in nearly the same
/// order. Every step takes constant time. Memory grows with the span from the smallest number that
/// is left to the largest. References stay valid until their value is erased.
template <typename T>
class Numbered {
 public:
  /// Adds a value under a number that has none. False, and no change, if it has one.
  bool Add(int64_t number, T value) {
    if (values_.empty()) first_ = number;
    for (; number < first_; --first_) values_.emplace_front();
    const auto at = static_cast<size_t>(number - first_);
    while (values_.size() <= at) values_.emplace_back();
    if (values_[at]) return false;
    values_[at].emplace(std::move(value));
    return true;
  }
  T* Find(int64_t number) {
    if (number < first_ || number - first_ >= static_cast<int64_t>(values_.size())) return nullptr;
    auto& value = values_[static_cast<size_t>(number - first_)];
    return value ? &*value : nullptr;
  }
  const T* Find(int64_t number) const { return const_cast<Numbered*>(this)->Find(number); }
  bool has(int64_t number) const { return Find(number) != nullptr; }
  /// The number has a value.
  T& at(int64_t number) { return *values_.at(static_cast<size_t>(number - first_)); }
  const T& at(int64_t number) const { return *values_.at(static_cast<size_t>(number - first_)); }
  void Erase(int64_t number) {
    if (!has(number)) return;
    values_[static_cast<size_t>(number - first_)].reset();
    for (; !values_.empty() && !values_.front(); ++first_) values_.pop_front();
  }
  /// Calls `visit(number, value)` for each value, in the order of numbers.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i]) visit(first_ + static_cast<int64_t>(i), *values_[i]);
    }
  }

 private:
  int64_t first_ = 0;
  std::deque<std::optional<T>> values_;  // of the numbers from first_ on
};

}  // namespace evald

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>

namespace evald::protocol {

/// The attempts that a process was given lately. A repeated message must not make it work twice on
/// one file. A plain value.
class SeenAttempts {
 public:
  /// False if this attempt is among the last 4096.
  bool Add(int64_t item, int attempt) {
    const std::pair<int64_t, int> entry(item, attempt);
    if (!seen_.insert(entry).second) return false;
    order_.push_back(entry);
    if (order_.size() > kMax) {
      seen_.erase(order_.front());
      order_.pop_front();
    }
    return true;
  }

  /// The attempt was taken back. An orchestrator that does not know of the first time may give it
  /// again.
  void Remove(int64_t item, int attempt) {
    const std::pair<int64_t, int> entry(item, attempt);
    if (seen_.erase(entry) > 0) order_.erase(std::find(order_.begin(), order_.end(), entry));
  }

 private:
  static constexpr size_t kMax = 4096;
  std::set<std::pair<int64_t, int>> seen_;
  std::deque<std::pair<int64_t, int>> order_;
};

}  // namespace evald::protocol

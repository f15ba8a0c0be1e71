#include "orchestrator/simulate/shared_link.h"

#include <algorithm>

namespace evald {

void SharedLink::Advance(double now) {
  if (!left_.empty()) {
    const double each = (now - now_) * bytes_per_s_ / static_cast<double>(left_.size());
    for (auto& [transfer, bytes] : left_) bytes = std::max(0.0, bytes - each);
  }
  now_ = now;
}

void SharedLink::Begin(double now, int64_t transfer, double bytes) {
  Advance(now);
  left_[transfer] = bytes;
}

void SharedLink::End(double now, int64_t transfer) {
  Advance(now);
  left_.erase(transfer);
}

std::optional<SharedLink::Next> SharedLink::FirstEnd() const {
  if (left_.empty()) return std::nullopt;
  const auto first = std::min_element(
      left_.begin(), left_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return Next{now_ + first->second * static_cast<double>(left_.size()) / bytes_per_s_,
              first->first};
}

}  // namespace evald

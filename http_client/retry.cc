#include "http_client/retry.h"

#include <algorithm>

namespace evald::http_client {

std::chrono::microseconds RetryPause(const RetryPolicy& policy, int attempts, double retry_after_s,
                                     double draw) {
  using Micros = std::chrono::microseconds;
  Micros pause = policy.first_pause;
  for (int i = 1; i < attempts && pause < policy.longest_pause; ++i) pause *= 2;
  pause = std::min(pause, policy.longest_pause);
  const Micros varied(static_cast<int64_t>(static_cast<double>(pause.count()) * (0.5 + draw / 2)));
  const double asked_us =
      std::min(retry_after_s * 1e6, static_cast<double>(policy.longest_retry_after.count()));
  return std::max(varied, Micros(static_cast<int64_t>(asked_us)));
}

bool IsTemporary(int status) {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

bool IsWorthAnother(const Response& response) {
  return response.outcome == Outcome::kUnreachable || response.outcome == Outcome::kBroken ||
         (response.answered() && IsTemporary(response.status));
}

}  // namespace evald::http_client

#pragma once

#include <atomic>
#include <random>

#include "http_client/request.h"
#include "http_client/retry.h"
#include "http_client/transfers.h"

namespace evald::http_client {

/// Makes one call at a time and waits for its end; keeps connections for the next call. The policy
/// is that of request.h. One thread at a time.
class Client {
 public:
  /// Makes the call. Throws Error(kUsage) for a URL or a header field that cannot be sent, and what
  /// the sink throws; every other failure is a response. The call ends as kCancelled soon after
  /// `*cancel` is set.
  Response Perform(const Request& request, const std::atomic<bool>* cancel = nullptr);

  /// The same, made again as `retry` says while another attempt is worth it (IsWorthAnother).
  /// Returns the last attempt's response. A POST without Idempotency-Key is made once.
  Response Perform(const Request& request, const RetryPolicy& retry,
                   const std::atomic<bool>* cancel = nullptr);

 private:
  Transfers transfers_;
  std::mt19937_64 random_{std::random_device{}()};  // for pauses only
};

/// Waits for `pause`, or until `*cancel` is set. Returns whether it is not set.
bool Pause(std::chrono::microseconds pause, const std::atomic<bool>* cancel);

}  // namespace evald::http_client

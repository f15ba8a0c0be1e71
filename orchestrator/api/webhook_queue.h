#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "http_client/request.h"

namespace evald::api {

/// The waiting calls of one webhook, in order. One is under way at a time. A failure delays it and
/// all calls behind it (exponential back-off with jitter). No clock, no socket; one thread.
class WebhookQueue {
 public:
  struct Limits {
    /// Above this the oldest call that is not under way is dropped
    size_t waiting_max = 1000;
    int attempts_max = 8;
    int64_t first_delay_us = 1'000'000;  ///< doubled with each failure
    int64_t longest_delay_us = 300'000'000;
  };
  struct Call {
    std::string id;     ///< unique; the same in each attempt
    std::string event;  ///< the event's type
    std::string body;
    int attempt = 0;  ///< from 1 once under way
  };
  enum class Outcome { kDelivered, kTryAgain, kGiveUp };

  explicit WebhookQueue(Limits limits) : limits_(limits) {}

  void Add(Call call);
  /// The call to make now, which is then under way. Nothing while one is, or before its time.
  std::optional<Call> Next(int64_t now_us);
  /// When Next() may return a call: 0 for at once, -1 if none waits.
  int64_t DueAt() const;
  /// The call under way has ended. `jitter` is in [0, 1). The receiver's Retry-After lengthens the
  /// delay, to `longest_delay_us` at most.
  void Ended(Outcome outcome, int64_t now_us, double jitter, double retry_after_s = 0);

  size_t waiting() const { return calls_.size(); }
  uint64_t delivered() const { return delivered_; }
  uint64_t failed() const { return failed_; }    ///< given up
  uint64_t dropped() const { return dropped_; }  ///< the queue was full

 private:
  Limits limits_;
  std::deque<Call> calls_;
  bool under_way_ = false;
  int64_t due_us_ = 0;
  uint64_t delivered_ = 0;
  uint64_t failed_ = 0;
  uint64_t dropped_ = 0;
};

/// The outcome of a call by its answer. An answer that is too long is an answer: its body is not
/// read.
WebhookQueue::Outcome OutcomeOf(const http_client::Response& response);

}  // namespace evald::api

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace evald::api {

/// The calls that wait for one webhook, in order. One is under way at a time; a failure delays it
/// (exponential back-off with jitter) and what stands behind it. No clock, no socket; one thread.
class WebhookQueue {
 public:
  struct Limits {
    size_t waiting_max = 1000;  ///< more drop the oldest that is not under way
    int attempts_max = 8;
    int64_t first_delay_us = 1'000'000;  ///< doubled with each failure
    int64_t longest_delay_us = 300'000'000;
  };
  struct Call {
    std::string id;     ///< unique; the same in each attempt
    std::string event;  ///< its type
    std::string body;
    int attempt = 0;  ///< from 1 when under way
  };
  enum class Outcome { kDelivered, kTryAgain, kGiveUp };

  explicit WebhookQueue(Limits limits) : limits_(limits) {}

  void Add(Call call);
  /// The call to make now, which is then under way; nothing while one is, or before its time.
  std::optional<Call> Next(int64_t now_us);
  /// When Next() may give something: 0 for at once, -1 when nothing waits.
  int64_t DueAt() const;
  /// How the call under way ended. `jitter` is in [0, 1).
  void Ended(Outcome outcome, int64_t now_us, double jitter);

  size_t waiting() const { return calls_.size(); }
  uint64_t delivered() const { return delivered_; }
  uint64_t failed() const { return failed_; }    ///< given up
  uint64_t dropped() const { return dropped_; }  ///< for want of room

 private:
  Limits limits_;
  std::deque<Call> calls_;
  bool under_way_ = false;
  int64_t due_us_ = 0;
  uint64_t delivered_ = 0;
  uint64_t failed_ = 0;
  uint64_t dropped_ = 0;
};

/// What an answer's status means for a call; 0 is no answer.
WebhookQueue::Outcome OutcomeOf(long status);

}  // namespace evald::api

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "http_client/request.h"

namespace evald::api {

/// The waiting calls of one webhook. One is under way at a time. Users take turns, and the calls of
/// one user keep their order. A failure delays all calls, since all go to one receiver (exponential
/// back-off with jitter); the call that failed goes first afterwards. No clock, no socket; one
/// thread.
class WebhookQueue {
 public:
  struct Limits {
    /// Above this a call of the user who has most is dropped: the oldest that was not tried yet and
    /// does not tell how a run ended, or the oldest that was not tried if there is none
    size_t waiting_max = 1000;
    int attempts_max = 8;
    int64_t first_delay_us = 1'000'000;  ///< doubled with each failure
    int64_t longest_delay_us = 300'000'000;
  };
  struct Call {
    std::string id;     ///< unique; the same in each attempt
    std::string event;  ///< the event's type
    std::string body;
    int attempt = 0;          ///< from 1 once under way
    bool ends_a_run = false;  ///< tells how a run ended
  };
  enum class Outcome { kDelivered, kTryAgain, kGiveUp };

  explicit WebhookQueue(Limits limits) : limits_(limits) {}

  /// `user`: whose run the event is about; "" for nobody's.
  void Add(const std::string& user, Call call);
  /// The call to make now, which is then under way. Nothing while one is, or before its time.
  std::optional<Call> Next(int64_t now_us);
  /// When Next() may return a call: 0 for at once, -1 if none waits.
  int64_t DueAt() const;
  /// The call under way has ended. `jitter` is in [0, 1). The receiver's Retry-After lengthens the
  /// delay, to `longest_delay_us` at most.
  void Ended(Outcome outcome, int64_t now_us, double jitter, double retry_after_s = 0);

  size_t waiting() const { return waiting_; }
  uint64_t delivered() const { return delivered_; }
  uint64_t failed() const { return failed_; }    ///< given up
  uint64_t dropped() const { return dropped_; }  ///< the queue was full

 private:
  using Calls = std::deque<Call>;

  void DropOne();
  /// The first call of the user whose turn it is has ended. The user goes behind all others.
  void EndTurn();

  Limits limits_;
  std::map<std::string, Calls> users_;  ///< users with a call that waits or is under way
  std::deque<std::string> turns_;       ///< the same users, in the order of their turns
  size_t waiting_ = 0;                  ///< with the call under way
  bool under_way_ = false;              ///< the first call of the first user
  int64_t due_us_ = 0;
  uint64_t delivered_ = 0;
  uint64_t failed_ = 0;
  uint64_t dropped_ = 0;
};

/// The outcome of a call by its answer. An answer that is too long is an answer: its body is not
/// read.
WebhookQueue::Outcome OutcomeOf(const http_client::Response& response);

}  // namespace evald::api

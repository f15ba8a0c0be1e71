#include "http_client/client.h"

#include <algorithm>
#include <thread>

namespace evald::http_client {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // how often the flag is looked at

bool IsSet(const std::atomic<bool>* cancel) { return cancel != nullptr && cancel->load(); }

bool MayRepeat(const Request& request) {
  return request.method != "POST" ||
         std::any_of(request.headers.begin(), request.headers.end(),
                     [](const auto& field) { return field.first == "Idempotency-Key"; });
}

Response Cancelled() {
  Response response;
  response.outcome = Outcome::kCancelled;
  response.error = "cancelled";
  return response;
}

}  // namespace

bool Pause(std::chrono::microseconds pause, const std::atomic<bool>* cancel) {
  const auto end = std::chrono::steady_clock::now() + pause;
  while (!IsSet(cancel)) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return true;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kLook));
  }
  return false;
}

Response Client::Perform(const Request& request, const std::atomic<bool>* cancel) {
  if (IsSet(cancel)) return Cancelled();
  transfers_.Start(0, request);
  while (true) {
    std::vector<Transfers::Ended> ended = transfers_.Poll(kLook);
    if (!ended.empty()) {
      if (ended.front().response.thrown) std::rethrow_exception(ended.front().response.thrown);
      return std::move(ended.front().response);
    }
    if (IsSet(cancel)) {
      transfers_.CancelAll();
      return Cancelled();
    }
  }
}

Response Client::Perform(const Request& request, const RetryPolicy& retry,
                         const std::atomic<bool>* cancel) {
  for (int attempt = 1;; ++attempt) {
    Response response = Perform(request, cancel);
    response.attempts = attempt;
    const bool begins_anew = response.sink_bytes == 0 || request.rewind;
    if (!MayRepeat(request) || attempt >= retry.attempts_max || !begins_anew ||
        !IsWorthAnother(response)) {
      return response;
    }
    const double draw = std::uniform_real_distribution<double>(0, 1)(random_);
    if (!Pause(RetryPause(retry, attempt, response.retry_after_s, draw), cancel)) {
      return Cancelled();
    }
    if (request.rewind) request.rewind();
  }
}

}  // namespace evald::http_client

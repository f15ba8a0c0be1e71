#include "orchestrator/api/webhook_queue.h"

#include <chrono>

#include "http_client/retry.h"

namespace evald::api {

void WebhookQueue::Add(Call call) {
  if (calls_.size() >= limits_.waiting_max) {
    calls_.erase(calls_.begin() + (under_way_ && calls_.size() > 1 ? 1 : 0));
    ++dropped_;
  }
  calls_.push_back(std::move(call));
}

std::optional<WebhookQueue::Call> WebhookQueue::Next(int64_t now_us) {
  if (under_way_ || calls_.empty() || now_us < due_us_) return std::nullopt;
  under_way_ = true;
  ++calls_.front().attempt;
  return calls_.front();
}

int64_t WebhookQueue::DueAt() const { return under_way_ || calls_.empty() ? -1 : due_us_; }

void WebhookQueue::Ended(Outcome outcome, int64_t now_us, double jitter, double retry_after_s) {
  under_way_ = false;
  due_us_ = 0;
  if (outcome == Outcome::kDelivered) {
    ++delivered_;
    calls_.pop_front();
    return;
  }
  const int attempt = calls_.front().attempt;
  if (outcome == Outcome::kGiveUp || attempt >= limits_.attempts_max) {
    ++failed_;
    calls_.pop_front();
    return;
  }
  using std::chrono::microseconds;
  http_client::RetryPolicy policy;
  policy.first_pause = microseconds(limits_.first_delay_us);
  policy.longest_pause = policy.longest_retry_after = microseconds(limits_.longest_delay_us);
  due_us_ = now_us + http_client::RetryPause(policy, attempt, retry_after_s, jitter).count();
}

WebhookQueue::Outcome OutcomeOf(const http_client::Response& response) {
  const bool came = response.answered() || response.outcome == http_client::Outcome::kTooLong;
  if (!came || http_client::IsTemporary(response.status)) return WebhookQueue::Outcome::kTryAgain;
  return response.status >= 200 && response.status < 300 ? WebhookQueue::Outcome::kDelivered
                                                         : WebhookQueue::Outcome::kGiveUp;
}

}  // namespace evald::api

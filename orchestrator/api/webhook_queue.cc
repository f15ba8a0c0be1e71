#include "orchestrator/api/webhook_queue.h"

#include <algorithm>

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

void WebhookQueue::Ended(Outcome outcome, int64_t now_us, double jitter) {
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
  // Between half and the whole of the delay, so that many senders do not come back together.
  int64_t delay_us = limits_.first_delay_us;
  for (int i = 1; i < attempt && delay_us < limits_.longest_delay_us; ++i) delay_us *= 2;
  delay_us = std::min(delay_us, limits_.longest_delay_us);
  due_us_ = now_us + static_cast<int64_t>(static_cast<double>(delay_us) * (0.5 + jitter / 2));
}

WebhookQueue::Outcome OutcomeOf(long status) {
  if (status >= 200 && status < 300) return WebhookQueue::Outcome::kDelivered;
  const bool again =
      status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
  return again ? WebhookQueue::Outcome::kTryAgain : WebhookQueue::Outcome::kGiveUp;
}

}  // namespace evald::api

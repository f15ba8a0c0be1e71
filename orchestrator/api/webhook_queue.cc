#include "orchestrator/api/webhook_queue.h"

#include <algorithm>
#include <chrono>

#include "http_client/retry.h"

namespace evald::api {

void WebhookQueue::Add(const std::string& user, Call call) {
  Calls& own = users_[user];
  if (own.empty()) turns_.push_back(user);
  own.push_back(std::move(call));
  if (++waiting_ > limits_.waiting_max) DropOne();
}

void WebhookQueue::DropOne() {
  const auto most = std::max_element(
      users_.begin(), users_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  Calls& calls = most->second;
  // The call under way, or the failed call that goes first afterwards, is the first of its user.
  const bool first_was_tried = calls.front().attempt > 0;
  const auto begin = calls.begin() + (first_was_tried ? 1 : 0);
  if (begin == calls.end()) return;  // it is the only call
  const auto oldest =
      std::find_if(begin, calls.end(), [](const Call& call) { return !call.ends_a_run; });
  calls.erase(oldest == calls.end() ? begin : oldest);
  --waiting_;
  ++dropped_;
  if (!calls.empty()) return;
  std::erase(turns_, most->first);
  users_.erase(most);
}

void WebhookQueue::EndTurn() {
  const std::string user = std::move(turns_.front());
  turns_.pop_front();
  Calls& calls = users_.at(user);
  calls.pop_front();
  --waiting_;
  if (calls.empty()) {
    users_.erase(user);
  } else {
    turns_.push_back(user);
  }
}

std::optional<WebhookQueue::Call> WebhookQueue::Next(int64_t now_us) {
  if (under_way_ || turns_.empty() || now_us < due_us_) return std::nullopt;
  under_way_ = true;
  Call& call = users_.at(turns_.front()).front();
  ++call.attempt;
  return call;
}

int64_t WebhookQueue::DueAt() const { return under_way_ || turns_.empty() ? -1 : due_us_; }

void WebhookQueue::Ended(Outcome outcome, int64_t now_us, double jitter, double retry_after_s) {
  under_way_ = false;
  due_us_ = 0;
  const int attempt = users_.at(turns_.front()).front().attempt;
  if (outcome == Outcome::kDelivered) {
    ++delivered_;
    EndTurn();
    return;
  }
  if (outcome == Outcome::kGiveUp || attempt >= limits_.attempts_max) {
    ++failed_;
    EndTurn();
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

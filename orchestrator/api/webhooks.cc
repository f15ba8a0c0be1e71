#include "orchestrator/api/webhooks.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "http_client/client.h"
#include "http_client/url.h"
#include "orchestrator/api/events.h"
#include "orchestrator/api/webhook_queue.h"

namespace evald {
namespace {

using api::WebhookQueue;

constexpr int kBatch = 200;
constexpr size_t kAnswerBytesMax = 64 * 1024;

// Shared with the listener, which may be called while Webhooks ends.
struct Wake {
  std::mutex mutex;
  std::condition_variable changed;
  bool events = true;
};

}  // namespace

std::string WebhookSignature(std::string_view secret, int64_t seconds, std::string_view body) {
  const std::string text = fmt::format("{}.{}", seconds, body);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &bytes);
  std::string signature = fmt::format("t={},v1=", seconds);
  for (unsigned int i = 0; i < bytes; ++i) signature += fmt::format("{:02x}", digest[i]);
  return signature;
}

bool Wants(const WebhookTarget& target, std::string_view type) {
  if (target.events.empty()) return type != "run.progress";
  for (const std::string& wanted : target.events) {
    if (type == wanted || (wanted.ends_with('.') && type.starts_with(wanted))) return true;
  }
  return false;
}

struct Webhooks::State {
  struct Hook {
    WebhookTarget target;
    WebhookQueue queue;
  };

  void Loop();
  void TakeEvents();
  bool DeliverDue();
  http_client::Response Post(const WebhookTarget& target, const WebhookQueue::Call& call);
  void Wait();
  void Count();

  RunService* service;
  std::deque<Hook> hooks;
  int64_t last = 0;
  std::shared_ptr<Wake> wake = std::make_shared<Wake>();
  std::shared_ptr<void> subscription;
  std::atomic<bool> stopping{false};
  mutable std::mutex statistics_mutex;
  WebhookStatistics statistics;
  std::mt19937_64 random{std::random_device{}()};
  http_client::Client client;
  std::thread thread;
};

Webhooks::Webhooks(RunService* service, std::vector<WebhookTarget> targets)
    : state_(std::make_unique<State>()) {
  State* state = state_.get();
  state->service = service;
  for (WebhookTarget& target : targets) {
    try {
      http_client::ParseUrl(target.url);
    } catch (Error& error) {
      throw error.AddContext("webhooks");
    }
    WebhookQueue::Limits limits;
    limits.attempts_max = target.attempts_max;
    limits.first_delay_us = target.first_delay.count() * 1000;
    state->hooks.push_back({std::move(target), WebhookQueue(limits)});
  }
  if (state->hooks.empty()) return;
  const auto view = service->View();
  state->last = view ? view->sequence : 0;
  state->subscription = service->OnEvents([wake = state->wake] {
    const std::lock_guard lock(wake->mutex);
    wake->events = true;
    wake->changed.notify_one();
  });
  state->thread = std::thread([state] { state->Loop(); });
}

Webhooks::~Webhooks() { Stop(); }

void Webhooks::Stop() {
  if (!state_->thread.joinable()) return;
  state_->subscription.reset();
  {
    const std::lock_guard lock(state_->wake->mutex);
    state_->stopping = true;
    state_->wake->changed.notify_one();
  }
  state_->thread.join();
}

WebhookStatistics Webhooks::statistics() const {
  const std::lock_guard lock(state_->statistics_mutex);
  return state_->statistics;
}

void Webhooks::State::Loop() {
  while (!stopping) {
    try {
      TakeEvents();
      if (DeliverDue()) continue;
    } catch (const std::exception& error) {
      log::Warn("webhooks: {}", error.what());
    }
    Wait();
  }
}

void Webhooks::State::TakeEvents() {
  for (size_t taken = kBatch; taken == kBatch;) {
    const std::vector<Event> events = service->EventsAfter("", last, kBatch);
    taken = events.size();
    for (const Event& event : events) {
      last = event.sequence;
      for (Hook& hook : hooks) {
        if (Wants(hook.target, event.type)) {
          hook.queue.Add({std::to_string(event.sequence), event.type, api::EventJson(event)});
        }
      }
    }
  }
  Count();
}

// Makes one call for each hook that is due. False if none was due.
bool Webhooks::State::DeliverDue() {
  bool any = false;
  for (Hook& hook : hooks) {
    const auto call = hook.queue.Next(MonotonicMicros());
    if (!call || stopping) continue;
    any = true;
    const http_client::Response response = Post(hook.target, *call);
    const double jitter = std::uniform_real_distribution<double>(0, 1)(random);
    const uint64_t failed = hook.queue.failed();
    hook.queue.Ended(api::OutcomeOf(response), MonotonicMicros(), jitter, response.retry_after_s);
    if (hook.queue.failed() > failed) {
      log::Warn("webhooks: {}: event {} is given up after attempt {}: {}",
                http_client::Shown(hook.target.url), call->id, call->attempt,
                response.answered() ? fmt::format("status {}", response.status) : response.error);
    }
  }
  Count();
  return any;
}

http_client::Response Webhooks::State::Post(const WebhookTarget& target,
                                            const WebhookQueue::Call& call) {
  http_client::Request request;
  request.method = "POST";
  request.url = target.url;
  request.body = call.body;
  request.headers = {{"Content-Type", "application/json"},
                     {"Evald-Delivery", call.id},
                     {"Evald-Event", call.event}};
  if (!target.secret.empty()) {
    const auto now_s = static_cast<int64_t>(WallSeconds());
    request.headers.emplace_back("Evald-Signature",
                                 WebhookSignature(target.secret, now_s, call.body));
  }
  request.limits.total = target.timeout;
  request.limits.body_bytes_max = kAnswerBytesMax;
  return client.Perform(request, &stopping);
}

void Webhooks::State::Wait() {
  std::unique_lock lock(wake->mutex);
  const auto ready = [this] { return wake->events || stopping.load(); };
  int64_t due_us = -1;
  for (const Hook& hook : hooks) {
    const int64_t at_us = hook.queue.DueAt();
    if (at_us >= 0 && (due_us < 0 || at_us < due_us)) due_us = at_us;
  }
  if (due_us < 0) {
    wake->changed.wait(lock, ready);
  } else {
    wake->changed.wait_for(
        lock, std::chrono::microseconds(std::max<int64_t>(0, due_us - MonotonicMicros())), ready);
  }
  wake->events = false;
}

void Webhooks::State::Count() {
  WebhookStatistics now;
  for (const Hook& hook : hooks) {
    now.delivered += hook.queue.delivered();
    now.failed += hook.queue.failed();
    now.dropped += hook.queue.dropped();
    now.waiting += hook.queue.waiting();
  }
  const std::lock_guard lock(statistics_mutex);
  statistics = now;
}

}  // namespace evald

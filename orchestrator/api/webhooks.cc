#include "orchestrator/api/webhooks.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/sha256.h"
#include "http_client/client.h"
#include "http_client/url.h"
#include "orchestrator/api/events.h"
#include "orchestrator/api/webhook_queue.h"

namespace evald {
namespace {

using api::WebhookQueue;

constexpr int kBatch = 200;
constexpr size_t kAnswerBytesMax = 64 * 1024;
constexpr size_t kUsersMax = 10'000;

// Shared with the listener, which may be called while Webhooks ends.
struct Wake {
  std::mutex mutex;
  std::condition_variable changed;
  bool events = true;
};

// Whether the event says that a run is over: with results, or without.
bool EndsARun(const Event& event) {
  if (event.type != "run.state" || event.data.empty()) return false;
  const Json data = ParseJson(event.data, "event " + std::to_string(event.sequence));
  const std::string state = FieldOr<std::string>(data, "state", "", "event");
  return state == "done" || state == "incomplete" || state == "failed" || state == "cancelled";
}

}  // namespace

std::string WebhookSignature(std::string_view secret, int64_t seconds, std::string_view body) {
  return fmt::format("t={},v1={}", seconds,
                     HmacSha256Hex(secret, fmt::format("{}.{}", seconds, body)));
}

bool Wants(const WebhookTarget& target, std::string_view type) {
  if (target.events.empty()) return type != "run.progress";
  for (const std::string& wanted : target.events) {
    if (type == wanted || (wanted.ends_with('.') && type.starts_with(wanted))) return true;
  }
  return false;
}

// One receiver with its thread. A receiver that does not answer holds up no other.
struct Webhooks::Hook {
  Hook(RunService* events, WebhookTarget receiver, WebhookQueue::Limits limits)
      : service(events), target(std::move(receiver)), queue(limits) {}
  ~Hook() {
    End();
    if (thread.joinable()) thread.join();
  }
  void Start(int64_t after);
  void End();

  void Loop();
  void TakeEvents();
  bool DeliverDue();
  const std::string& UserOf(const std::string& run);
  http_client::Response Post(const WebhookQueue::Call& call);
  void Wait();
  void Count();

  RunService* service;
  WebhookTarget target;
  WebhookQueue queue;
  int64_t last = 0;
  std::unordered_map<std::string, std::string> users;  ///< of runs with recent events
  std::shared_ptr<Wake> wake = std::make_shared<Wake>();
  std::shared_ptr<void> subscription;
  std::atomic<bool> stopping{false};
  mutable std::mutex statistics_mutex;
  WebhookStatistics statistics;
  std::mt19937_64 random{std::random_device{}()};
  http_client::Client client;
  std::thread thread;
};

Webhooks::Webhooks(RunService* service, std::vector<WebhookTarget> targets) {
  for (WebhookTarget& target : targets) {
    try {
      http_client::ParseUrl(target.url);
    } catch (Error& error) {
      throw error.AddContext("webhooks");
    }
    WebhookQueue::Limits limits;
    limits.attempts_max = target.attempts_max;
    limits.first_delay_us = target.first_delay.count() * 1000;
    hooks_.push_back(std::make_unique<Hook>(service, std::move(target), limits));
  }
  const auto view = service->View();
  for (const auto& hook : hooks_) hook->Start(view ? view->sequence : 0);
}

Webhooks::~Webhooks() { Stop(); }

void Webhooks::Stop() {
  for (const auto& hook : hooks_) hook->End();
  for (const auto& hook : hooks_) {
    if (hook->thread.joinable()) hook->thread.join();  // its statistics stay
  }
}

WebhookStatistics Webhooks::statistics() const {
  WebhookStatistics all;
  for (const auto& hook : hooks_) {
    const std::lock_guard lock(hook->statistics_mutex);
    all.delivered += hook->statistics.delivered;
    all.failed += hook->statistics.failed;
    all.dropped += hook->statistics.dropped;
    all.waiting += hook->statistics.waiting;
  }
  return all;
}

void Webhooks::Hook::Start(int64_t after) {
  last = after;
  subscription = service->OnEvents([wake = wake] {
    const std::lock_guard lock(wake->mutex);
    wake->events = true;
    wake->changed.notify_one();
  });
  thread = std::thread([this] { Loop(); });
}

void Webhooks::Hook::End() {
  subscription.reset();
  const std::lock_guard lock(wake->mutex);
  stopping = true;
  wake->changed.notify_one();
}

void Webhooks::Hook::Loop() {
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

void Webhooks::Hook::TakeEvents() {
  for (size_t taken = kBatch; taken == kBatch;) {
    const std::vector<Event> events = service->EventsAfter("", last, kBatch);
    taken = events.size();
    for (const Event& event : events) {
      last = event.sequence;
      if (!Wants(target, event.type)) continue;
      WebhookQueue::Call call;
      call.id = std::to_string(event.sequence);
      call.event = event.type;
      call.body = api::EventJson(event);
      call.ends_a_run = EndsARun(event);
      queue.Add(UserOf(event.run), std::move(call));
    }
  }
  Count();
}

// The user of a run; "" for no run, and for one that is not known any more. Users of runs do not
// change, so they are looked up once.
const std::string& Webhooks::Hook::UserOf(const std::string& run) {
  static const std::string kNobody;
  if (run.empty()) return kNobody;
  const auto known = users.find(run);
  if (known != users.end()) return known->second;
  if (users.size() >= kUsersMax) users.clear();
  const std::optional<Json> resource = service->Run(run);
  return users[run] = resource ? FieldOr<std::string>(*resource, "user", "", run) : "";
}

// Makes the call that is due. False if none is.
bool Webhooks::Hook::DeliverDue() {
  const auto call = queue.Next(MonotonicMicros());
  if (!call) return false;
  const http_client::Response response = Post(*call);
  const double jitter = std::uniform_real_distribution<double>(0, 1)(random);
  const uint64_t failed = queue.failed();
  queue.Ended(api::OutcomeOf(response), MonotonicMicros(), jitter, response.retry_after_s);
  if (queue.failed() > failed) {
    log::Warn("webhooks: {}: event {} is given up after attempt {}: {}",
              http_client::Shown(target.url), call->id, call->attempt,
              response.answered() ? fmt::format("status {}", response.status) : response.error);
  }
  Count();
  return true;
}

http_client::Response Webhooks::Hook::Post(const WebhookQueue::Call& call) {
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

void Webhooks::Hook::Wait() {
  std::unique_lock lock(wake->mutex);
  const auto ready = [this] { return wake->events || stopping.load(); };
  const int64_t due_us = queue.DueAt();
  if (due_us < 0) {
    wake->changed.wait(lock, ready);
  } else {
    wake->changed.wait_for(
        lock, std::chrono::microseconds(std::max<int64_t>(0, due_us - MonotonicMicros())), ready);
  }
  wake->events = false;
}

void Webhooks::Hook::Count() {
  const std::lock_guard lock(statistics_mutex);
  statistics = {queue.delivered(), queue.failed(), queue.dropped(), queue.waiting()};
}

}  // namespace evald

#include "orchestrator/api/events.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"

namespace evald::api {
namespace {

constexpr int kBatch = 500;
constexpr size_t kFollowerBatch = 64;  // about a piece of a stream
constexpr int64_t kSequenceMax = 999'999'999'999'999'999;
constexpr const char* kGreeting = "retry: 2000\n\n";

std::string FrameOf(const Event& event) {
  return http::EventFrame(event.sequence, event.type, EventJson(event));
}

}  // namespace

std::string EventJson(const Event& event) {
  return fmt::format("{{\"sequence\":{},\"run\":{},\"type\":{},\"data\":{}}}", event.sequence,
                     event.run.empty() ? "null" : ToLine(event.run), ToLine(event.type),
                     event.data.empty() ? "null" : event.data);
}

class EventHub::Follower : public http::EventSource {
 public:
  Follower(EventHub* hub, std::string run, int64_t sequence)
      : hub_(hub), run_(std::move(run)), at_(sequence) {
    hub_->followers_.insert(this);
  }
  ~Follower() override { hub_->followers_.erase(this); }

  std::string Next(size_t bytes_max) override {
    std::string frames;
    if (!greeted_) frames = kGreeting;
    greeted_ = true;
    while (frames.size() < bytes_max && at_ < hub_->base_) {
      if (!FromService(bytes_max, &frames)) return frames;
    }
    FromRing(bytes_max, &frames);
    return frames;
  }

  void OnMore(std::function<void()> wake) override { wake_ = std::move(wake); }

  void Wake() {
    if (wake_) wake_();
  }

 private:
  // False if the piece is full.
  bool FromService(size_t bytes_max, std::string* frames) {
    const std::vector<Event> events = hub_->service_->EventsAfter(run_, at_, kFollowerBatch);
    for (const Event& event : events) {
      *frames += FrameOf(event);
      at_ = event.sequence;
      if (frames->size() >= bytes_max) return false;
    }
    // The service has no more events: the ring goes on from here.
    if (events.size() < kFollowerBatch) at_ = std::max(at_, hub_->base_);
    return true;
  }

  void FromRing(size_t bytes_max, std::string* frames) {
    auto entry =
        std::upper_bound(hub_->ring_.begin(), hub_->ring_.end(), at_,
                         [](int64_t at, const Entry& other) { return at < other.sequence; });
    for (; entry != hub_->ring_.end() && frames->size() < bytes_max; ++entry) {
      if (run_.empty() || entry->run == run_) *frames += entry->frame;
      at_ = entry->sequence;
    }
  }

  EventHub* hub_;
  std::string run_;
  int64_t at_;
  bool greeted_ = false;
  std::function<void()> wake_;
};

EventHub::EventHub(const RunService* service) : service_(service) {
  const auto view = service_->View();
  base_ = last_ = view ? view->sequence : 0;
}

void EventHub::Poll() {
  for (size_t taken = kBatch; taken == kBatch;) {
    const std::vector<Event> events = service_->EventsAfter("", last_, kBatch);
    taken = events.size();
    for (const Event& event : events) {
      ring_.push_back({event.sequence, event.run, FrameOf(event)});
      ring_bytes_ += ring_.back().frame.size();
      last_ = event.sequence;
    }
    while (ring_bytes_ > kRingBytesMax) {
      base_ = ring_.front().sequence;
      ring_bytes_ -= ring_.front().frame.size();
      ring_.pop_front();
    }
  }
  for (Follower* follower : followers_) follower->Wake();
}

std::shared_ptr<http::EventSource> EventHub::Follow(const std::string& run, int64_t sequence) {
  if (followers_.size() >= kFollowersMax) return nullptr;
  return std::make_shared<Follower>(this, run, std::min(sequence, last_));
}

namespace {

// The event to go on after: the Last-Event-ID field, else the parameter "after", else `otherwise`.
int64_t StartOf(const http::Request& request, int64_t otherwise) {
  QueryReader query(request);
  const std::optional<int64_t> after = query.Integer("after", 0, kSequenceMax);
  query.Finish();
  const std::string* id = request.headers.Find("Last-Event-ID");
  if (id == nullptr) return after.value_or(otherwise);
  const std::optional<int64_t> number = ParseInteger(*id);
  if (!number || *number < 0 || *number > kSequenceMax) {
    throw http::ProblemError({400, "invalid-header", "Last-Event-ID: expected the id of an event",
                              "", "header:Last-Event-ID"});
  }
  return *number;
}

void Stream(const Context& context, const std::string& run, int64_t sequence,
            const http::Responder& answer) {
  http::Response response;
  response.events = context.hub->Follow(run, sequence);
  if (!response.events) {
    throw http::ProblemError(
        {503, "followers", "too many clients follow events", "", "", {{"Retry-After", "10"}}});
  }
  answer(std::move(response));
}

}  // namespace

void AddEventRoutes(http::Router* router, const Context* context) {
  router->Add({"GET", "/v1/events", http::Role::kRead,
               [=](const RequestPtr& request, const http::Responder& answer) {
                 Stream(*context, "", StartOf(*request, context->hub->last()), answer);
               }});
  router->Add({"GET", "/v1/runs/{run}/events", http::Role::kRead,
               [=](const RequestPtr& request, const http::Responder& answer) {
                 const int64_t start = StartOf(*request, 0);
                 Stream(*context, FindRun(*context, *request).at("id").get<std::string>(), start,
                        answer);
               }});
}

}  // namespace evald::api

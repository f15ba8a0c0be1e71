// Events: kept in the database, and told to their followers.
#include <algorithm>
#include <utility>

#include "base/jsonl.h"
#include "orchestrator/service/service.h"

namespace evald {
namespace {

constexpr size_t kRecentMax = 10000;

}  // namespace

// Followers hear of an event once it is on disk, so that its number never stands for another event.
void Service::Emit(const std::string& run, const std::string& type, const Json& data) {
  auto event = std::make_shared<Event>();
  *event = {next_event_++, run, type, ToLine(data)};
  database_->Post(
      [event](RunStore& store) {
        service_store::AddEvent(store.database(),
                                {event->sequence, event->run, event->type, event->data});
      },
      [this, event] {
        std::vector<std::shared_ptr<std::function<void()>>> listeners;
        {
          const std::lock_guard lock(events_mutex_);
          recent_.push_back(std::move(*event));
          if (recent_.size() > kRecentMax) recent_.pop_front();
          for (auto it = listeners_.begin(); it != listeners_.end();) {
            if (auto listener = it->lock()) {
              listeners.push_back(std::move(listener));
              ++it;
            } else {
              it = listeners_.erase(it);
            }
          }
        }
        for (const auto& listener : listeners) (*listener)();
      });
}

std::vector<Event> Service::EventsAfter(const std::string& run, int64_t sequence, int limit) const {
  std::vector<Event> events;
  {
    const std::lock_guard lock(events_mutex_);
    if (!recent_.empty() && recent_.front().sequence <= sequence + 1) {
      const auto first = std::upper_bound(
          recent_.begin(), recent_.end(), sequence,
          [](int64_t value, const Event& event) { return value < event.sequence; });
      for (auto it = first; it != recent_.end() && static_cast<int>(events.size()) < limit; ++it) {
        if (run.empty() || it->run == run) events.push_back(*it);
      }
      return events;
    }
  }
  const std::lock_guard lock(reader_mutex_);
  for (EventRow& row : service_store::EventsAfter(*reader_, run, sequence, limit)) {
    events.push_back({row.sequence, std::move(row.run), std::move(row.type), std::move(row.data)});
  }
  return events;
}

std::shared_ptr<void> Service::OnEvents(std::function<void()> listener) {
  auto shared = std::make_shared<std::function<void()>>(std::move(listener));
  const std::lock_guard lock(events_mutex_);
  listeners_.push_back(shared);
  return shared;
}

void Service::Tell(const std::string& type, Json data) {
  loop_.Post([this, type, data = std::move(data)] { Emit("", type, data); });
}

}  // namespace evald

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "http_server/event_stream.h"
#include "orchestrator/service/run_service.h"

namespace evald::api {

/// Gives a service's events to the clients of its event stream (here: followers). Each event is
/// rendered once and kept in a ring of bounded size; a follower is a cursor. If a follower asks for
/// events that the ring no longer holds, it gets them from the service until it has caught up. All
/// methods run on the server's thread.
class EventHub {
 public:
  static constexpr size_t kRingBytesMax = 4 << 20;
  static constexpr size_t kFollowersMax = 1000;

  explicit EventHub(const RunService* service);

  /// Takes over new events and wakes followers.
  void Poll();

  /// A stream of the events after `sequence` of `run`, or of all runs for "". A `sequence` beyond
  /// the last event counts as the last. Nothing if there are too many followers. The hub must
  /// outlive the stream.
  std::shared_ptr<http::EventSource> Follow(const std::string& run, int64_t sequence);

  int64_t last() const { return last_; }

 private:
  class Follower;
  struct Entry {
    int64_t sequence;
    std::string run;
    std::string frame;
  };

  const RunService* service_;
  std::deque<Entry> ring_;
  size_t ring_bytes_ = 0;
  int64_t base_ = 0;  ///< the ring holds all events after this one
  int64_t last_ = 0;
  std::set<Follower*> followers_;
};

/// {"sequence","run","type","data"} as one line.
std::string EventJson(const Event& event);

}  // namespace evald::api

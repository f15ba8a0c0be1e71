#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace evald::http {

/// Counts of a server's work. Server's thread only.
struct Statistics {
  /// Upper bounds of the duration buckets, in seconds.
  static constexpr std::array<double, 10> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025,
                                                     0.05,  0.1,    0.25,  1,    5};
  struct Durations {
    std::array<uint64_t, kBounds.size() + 1> counts{};
    double sum_s = 0;
    uint64_t count = 0;
  };
  struct Key {
    std::string method;  ///< "other" for a method without a route
    std::string route;   ///< the template; "" if none matched
    int status = 0;
    auto operator<=>(const Key&) const = default;
  };

  std::map<Key, uint64_t> requests;
  std::map<std::string, Durations> durations;  ///< by route; without event streams
  uint64_t connections_total = 0;
  uint64_t connections_refused_total = 0;  ///< over the limit, or from another user
  uint64_t connections_evicted_total = 0;  ///< closed to make room for others
  uint64_t timeouts_total = 0;             ///< connections closed because they were slow or silent
  uint64_t connections = 0;                ///< open now
  uint64_t event_streams = 0;              ///< open now

  void Count(const Key& key, double seconds, bool timed) {
    ++requests[key];
    if (!timed) return;
    Durations& entry = durations[key.route];
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++entry.counts[bucket];
    ++entry.count;
    entry.sum_s += seconds;
  }
};

}  // namespace evald::http

#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace evald {

/// How fast the chunks of a checkpoint come to an agent from one source, lately: over the last two
/// spans of at least kSpanMicros that brought something. Reports come every few seconds and count
/// whole chunks, so the rate is known as a bound from above and one from below. A plain value;
/// times are microseconds of any one clock that does not go back.
class FetchRate {
 public:
  static constexpr int64_t kSpanMicros = 10'000'000;

  /// The agent, which has so many chunks, fetches from the source from now on.
  void Begin(int64_t now_us, int64_t have);
  void Report(int64_t now_us, int64_t have);
  /// The time until now does not count: nothing could come.
  void Pause(int64_t now_us);

  int64_t began_us() const { return told_.us; }
  int64_t began_with() const { return told_.have; }

  /// Chunks a second; no value before kSpanMicros. Up to `under_way` chunks may be half here.
  std::optional<double> AtMost(int64_t under_way) const;
  std::optional<double> AtLeast(int64_t under_way) const;

 private:
  struct Mark {
    int64_t us = 0, have = 0;
  };
  Mark told_, from_, next_, now_;
};

/// How fast the service gave whole checkpoints lately: the chunks a second of the last few fetches
/// from it. A plain value.
class ServiceRates {
 public:
  static constexpr size_t kKept = 8;
  static constexpr int64_t kChunksMin = 8;  ///< fewer say little about the link

  void Ended(int64_t chunks, int64_t micros);
  /// What was measured does not hold any more.
  void Clear() { rates_.clear(); }
  double best() const;  ///< 0: nothing is known

 private:
  std::deque<double> rates_;
};

}  // namespace evald

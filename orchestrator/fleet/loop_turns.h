#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace evald {

/// Durations of a loop's turns, for /metrics. A turn is one piece of work during which the loop
/// looks at nothing else: no message is read and no heartbeat is seen.
struct LoopTurns {
  /// Upper bounds of the buckets, in seconds.
  static constexpr std::array<double, 9> kBounds = {0.0001, 0.001, 0.005, 0.01, 0.05,
                                                    0.1,    0.5,   1,     5};

  /// Turns in each bucket; the last holds those longer than all bounds
  std::array<uint64_t, kBounds.size() + 1> counts{};
  uint64_t count = 0;
  double sum_s = 0;
  double longest_s = 0;            ///< by the clock, in the last minute
  double longest_processor_s = 0;  ///< the most processor time of a turn in the last minute
};

/// Adds up turns. A plain value. Times come from outside, in microseconds of one monotonic clock.
class LoopTurnCounter {
 public:
  void Add(int64_t now_us, double seconds, double processor_s);
  /// The longest turns are those of the last 60 to 65 seconds before `now_us`.
  LoopTurns Look(int64_t now_us) const;

 private:
  struct Stretch {  // a stretch of time, with the longest turns that ended in it
    int64_t number = -1;
    double longest_s = 0;
    double longest_processor_s = 0;
  };
  static constexpr int64_t kStretchMicros = 5'000'000;
  static constexpr size_t kStretches = 13;  // a minute, and the stretch under way

  LoopTurns turns_;
  std::array<Stretch, kStretches> stretches_;
};

}  // namespace evald

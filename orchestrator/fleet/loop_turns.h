#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace evald {

/// How long the turns of a loop took, for /metrics. A turn is one piece of work that the loop did
/// without looking at anything else: while it lasts, nobody's message is read and no heartbeat is
/// seen.
struct LoopTurns {
  /// Upper bounds of the buckets, in seconds.
  static constexpr std::array<double, 9> kBounds = {0.0001, 0.001, 0.005, 0.01, 0.05,
                                                    0.1,    0.5,   1,     5};

  std::array<uint64_t, kBounds.size() + 1>
      counts{};  ///< turns in each bucket; those longer than all bounds last
  uint64_t count = 0;
  double sum_s = 0;
  double longest_s = 0;            ///< by the clock, of the last minute
  double longest_processor_s = 0;  ///< the most processor time that a turn of the last minute took
};

/// Adds up turns. A plain value: times come from outside, in microseconds of one clock that does
/// not go back.
class LoopTurnCounter {
 public:
  void Add(int64_t now_us, double seconds, double processor_s);
  /// The longest turns are those of the last 60 to 65 seconds before `now_us`.
  LoopTurns Look(int64_t now_us) const;

 private:
  struct Stretch {  // of time, with the longest turns that ended in it
    int64_t number = -1;
    double longest_s = 0;
    double longest_processor_s = 0;
  };
  static constexpr int64_t kStretchMicros = 5'000'000;
  static constexpr size_t kStretches = 13;  // a minute, and the stretch that is under way

  LoopTurns turns_;
  std::array<Stretch, kStretches> stretches_;
};

}  // namespace evald

#include "orchestrator/agent/clock_offset.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(ClockOffset, IsMeasuredInTheMiddleOfTheQuickestAnswer) {
  ClockOffset clock;
  EXPECT_EQ(clock.offset_us(), 0) << "before anything is known";
  // the round took 2000: the other clock was at 51000 at this clock's 2000
  clock.Measured(1000, 51'000, 3000);
  EXPECT_EQ(clock.offset_us(), 49'000);
  clock.Measured(10'000, 90'000, 30'000);  // a slower round tells less
  EXPECT_EQ(clock.offset_us(), 49'000);
  clock.Measured(40'000, 90'010, 40'020);
  EXPECT_EQ(clock.offset_us(), 50'000);
  clock.Measured(50'000, 0, 49'000);  // an answer before its question does not count
  EXPECT_EQ(clock.offset_us(), 50'000);
}

// The error is at most half of the shortest round, however long messages take.
TEST(ClockOffset, IsOffByHalfARoundAtMost) {
  constexpr int64_t kTrue = -7'000'000;
  for (int64_t there = 0; there <= 400; there += 50) {
    for (int64_t back = 0; back <= 400; back += 50) {
      ClockOffset clock;
      clock.Measured(1'000'000, 1'000'000 + there + kTrue, 1'000'000 + there + back);
      EXPECT_LE(std::abs(clock.offset_us() - kTrue), (there + back + 1) / 2);
    }
  }
}

}  // namespace
}  // namespace evald

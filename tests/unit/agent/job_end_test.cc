#include "orchestrator/agent/job_end.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

constexpr double kStart = 1e9, kEnd = kStart + 7200;

TEST(EndByOwnClock, IsTheJobsIfTheClocksAgree) {
  EXPECT_EQ(EndByOwnClock(kStart, kEnd, kStart + 10), kEnd);
  EXPECT_EQ(EndByOwnClock(0, kEnd, kStart + 10), kEnd);
}

TEST(EndByOwnClock, LeavesNoMoreThanTheWholeJobToAClockThatIsBehind) {
  const double now = kStart - 5 * 3600;
  EXPECT_EQ(EndByOwnClock(kStart, kEnd, now), now + 7200);
}

TEST(EndByOwnClock, IsNotOverForAClockThatIsAhead) {
  const double now = kEnd + 5 * 3600;
  EXPECT_EQ(EndByOwnClock(kStart, kEnd, now), now + 7200);
  EXPECT_EQ(EndByOwnClock(0, kEnd, now), 0) << "not known";
}

TEST(EndByOwnClock, IsNotMadeOfTimesThatMakeNoSense) {
  EXPECT_EQ(EndByOwnClock(kEnd, kStart, kStart - 10), kStart);
}

}  // namespace
}  // namespace evald

// The wall limit on a program's own clock. The test sets its clock by hand.

#include "metrics/sandbox/guest/wall_clock.h"

#include <gtest/gtest.h>

namespace evald::guest {

namespace {
uint64_t g_now_us = 0;
}

uint64_t NowMicros() { return g_now_us; }

namespace {

constexpr uint64_t kSecond = 1'000'000;
constexpr uint64_t kCpuLimit = 3 * kSecond;

WallClock Clock(uint32_t windows = sandbox::kWallWindowsMax) {
  g_now_us = 1000 * kSecond;
  sandbox::ProgramRequest request = {};
  request.wall_limit_us = 15 * kSecond;
  request.wall_windows = windows;
  return WallClock(request, kCpuLimit);
}

WallVerdict At(WallClock& clock, uint64_t second, uint64_t cpu_us, const Waiting& waiting) {
  while (g_now_us < (1000 + second) * kSecond) {
    g_now_us += kSecond / 2;
    clock.IsDue();
  }
  EXPECT_TRUE(clock.IsDue());
  return clock.Judge(cpu_us, waiting);
}

constexpr Waiting kUnknown = {false, false, 0};
Waiting Waited(uint64_t seconds, bool runnable = false) {
  return {true, runnable, seconds * kSecond};
}

TEST(WallClock, IsNotDueBeforeItsLimit) {
  WallClock clock = Clock();
  for (int i = 0; i < 14; ++i) {
    g_now_us += kSecond;
    EXPECT_FALSE(clock.IsDue());
  }
  g_now_us += kSecond - 1;
  EXPECT_FALSE(clock.IsDue());
  g_now_us += 1;
  EXPECT_TRUE(clock.IsDue());
}

TEST(WallClock, AFrozenSandboxDoesNotAge) {
  WallClock clock = Clock();
  g_now_us += kSecond;
  EXPECT_FALSE(clock.IsDue());
  g_now_us += 3600 * kSecond;
  EXPECT_FALSE(clock.IsDue());
  g_now_us += kSecond;
  EXPECT_FALSE(clock.IsDue());
  EXPECT_EQ(At(clock, 3600 + 15, 1000, Waited(0)), WallVerdict::kSlept);
}

TEST(WallClock, ASleeperIsJudgedAtOnce) {
  WallClock clock = Clock();
  EXPECT_EQ(At(clock, 15, 1000, Waited(0)), WallVerdict::kSlept);
}

/// A program that works 2 s and sleeps 12 s, and waits 6 s for a processor.
TEST(WallClock, WaitsForAProcessorDoNotCount) {
  WallClock clock = Clock();
  EXPECT_EQ(At(clock, 15, kSecond / 2, Waited(6)), WallVerdict::kWithin);
  EXPECT_EQ(At(clock, 20, kSecond / 2, Waited(6)), WallVerdict::kWithin);
  EXPECT_EQ(At(clock, 21, kSecond / 2, Waited(6)), WallVerdict::kSlept) << "15 s of its own";
}

TEST(WallClock, TheLoadDoesNotChangeWhereAProgramMeetsIt) {
  for (const uint64_t waited : {0, 3, 20, 29}) {
    WallClock clock = Clock();
    // At 15 s of its own clock the program has worked for 1 s, so CPU time would decide within four
    // limits. At 30 s it has worked for 1.4 s, so CPU time would not decide.
    EXPECT_EQ(At(clock, 15 + waited, kSecond, Waited(waited)), WallVerdict::kWithin) << waited;
    EXPECT_EQ(At(clock, 30 + waited, kSecond * 14 / 10, Waited(waited)), WallVerdict::kSlept)
        << waited;
  }
}

TEST(WallClock, AWaitThatGoesOnIsWaitedFor) {
  WallClock clock = Clock();
  EXPECT_EQ(At(clock, 16, 1000, Waited(0, true)), WallVerdict::kWithin);
  EXPECT_EQ(At(clock, 17, 1000, Waited(2)), WallVerdict::kSlept);
}

TEST(WallClock, AStarvedProgramIsUnclearAfterFourLimits) {
  WallClock clock = Clock();
  EXPECT_EQ(At(clock, 59, kSecond / 10, Waited(55, true)), WallVerdict::kWithin);
  EXPECT_EQ(At(clock, 60, kSecond / 10, Waited(56, true)), WallVerdict::kUnclear);
  WallClock many_threads = Clock();
  EXPECT_EQ(At(many_threads, 59, kSecond / 10, Waited(900)), WallVerdict::kWithin)
      << "waits at the same time";
  EXPECT_EQ(At(many_threads, 60, kSecond / 10, Waited(900)), WallVerdict::kUnclear);
}

TEST(WallClock, WithoutTheKernelsCountsTheClockIsUnclear) {
  WallClock clock = Clock();
  EXPECT_EQ(At(clock, 15, 1000, kUnknown), WallVerdict::kUnclear);
  WallClock working = Clock();
  EXPECT_EQ(At(working, 15, kSecond, kUnknown), WallVerdict::kWithin);
  EXPECT_EQ(At(working, 30, 2 * kSecond, kUnknown), WallVerdict::kWithin);
  EXPECT_EQ(At(working, 60, 2 * kSecond, kUnknown), WallVerdict::kUnclear);
}

TEST(WallClock, AloneItIsReachedOnce) {
  WallClock clock = Clock(1);
  EXPECT_NE(At(clock, 15, 2 * kSecond, kUnknown), WallVerdict::kWithin);
}

}  // namespace
}  // namespace evald::guest

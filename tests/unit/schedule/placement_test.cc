#include "orchestrator/schedule/placement.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace evald {
namespace {

TEST(WorthStaging, SmallRunsGoWhereTheirCheckpointIs) {
  EXPECT_FALSE(WorthStaging({.devices_beside = 8, .open_s = 100, .stage_s = 15}))
      << "they are through in 12.5 s";
  EXPECT_TRUE(WorthStaging({.devices_beside = 8, .open_s = 1000, .stage_s = 15}));
  EXPECT_TRUE(WorthStaging({.devices_beside = 1, .open_s = 100, .stage_s = 15}))
      << "fewer devices take longer";
  EXPECT_FALSE(WorthStaging({.devices_beside = 1, .open_s = 2, .stage_s = 0}))
      << "a load is not for nothing";
}

TEST(WorthStaging, WhereNobodyHasItEverybodyMay) {
  EXPECT_TRUE(WorthStaging({.devices_beside = 0, .open_s = 0.1, .stage_s = 100}));
  EXPECT_TRUE(WorthStaging({.devices_beside = 0, .open_s = {}, .stage_s = 100}));
}

TEST(WorthStaging, WhatIsNotPlannedIsSmallUntilMoreIsKnown) {
  EXPECT_FALSE(WorthStaging({.devices_beside = 1, .open_s = {}, .stage_s = 1}));
}

// Copies of 10 bytes. `seconds` is the time of each of so many copies.
int AfterCopies(CopyPace* pace, int copies, double (*seconds)(int under_way)) {
  for (int ended = 0; ended < copies;) {
    const int at_once = pace->at_once();
    for (int i = 0; i < at_once && ended < copies; ++i, ++ended)
      pace->Ended(at_once - i, 10, seconds(at_once));
  }
  return pace->at_once();
}

TEST(CopyPace, CopiesOverOneLinkAreMadeOneAfterAnother) {
  CopyPace pace;
  const auto shared = [](int under_way) { return 5.0 * under_way; };
  EXPECT_EQ(pace.at_once(), 1);
  EXPECT_EQ(AfterCopies(&pace, 1, shared), 2) << "it may be worth a try";
  EXPECT_EQ(AfterCopies(&pace, 2, shared), 1);
  int side_by_side = 0;
  for (int i = 0; i < 100; ++i) {
    side_by_side += pace.at_once() > 1 ? 1 : 0;
    AfterCopies(&pace, pace.at_once(), shared);
  }
  EXPECT_LT(side_by_side, 7) << "ever more rarely";
}

TEST(CopyPace, CopiesOverLinksOfTheirOwnAreMadeTogether) {
  CopyPace pace;
  EXPECT_GE(AfterCopies(&pace, 64, [](int) { return 5.0; }), 64);
  EXPECT_DOUBLE_EQ(pace.bytes_per_s(), 2);
}

TEST(CopyPace, FourLinksAreUsed) {
  CopyPace pace;
  const auto four = [](int under_way) { return 5.0 * std::max(1.0, under_way / 4.0); };
  EXPECT_EQ(AfterCopies(&pace, 1 + 2 + 4 + 8, four), 4);
}

// A turn with fewer copies than there may be says nothing.
TEST(CopyPace, OnlyAFullTurnIsJudged) {
  CopyPace pace;
  pace.Ended(1, 10, 5);
  ASSERT_EQ(pace.at_once(), 2);
  pace.Ended(1, 10, 500);
  EXPECT_EQ(pace.at_once(), 2);
  pace.Ended(2, 0, 5);
  pace.Ended(2, 10, 0);
  EXPECT_EQ(pace.at_once(), 2);
}

}  // namespace
}  // namespace evald

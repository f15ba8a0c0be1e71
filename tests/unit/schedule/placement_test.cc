#include "orchestrator/schedule/placement.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace evald

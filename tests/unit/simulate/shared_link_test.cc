#include "orchestrator/simulate/shared_link.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(SharedLink, OneTransferHasAllOfIt) {
  SharedLink link(100);
  EXPECT_FALSE(link.FirstEnd());
  link.Begin(5, 1, 1000);
  ASSERT_TRUE(link.FirstEnd());
  EXPECT_DOUBLE_EQ(link.FirstEnd()->time, 15);
  EXPECT_EQ(link.FirstEnd()->transfer, 1);
}

TEST(SharedLink, TwoShareIt) {
  SharedLink link(100);
  link.Begin(0, 1, 1000);
  link.Begin(5, 2, 1000);  // 500 of the first are left; both now move at 50 a second
  EXPECT_EQ(link.FirstEnd()->transfer, 1);
  EXPECT_DOUBLE_EQ(link.FirstEnd()->time, 15);
  link.End(15, 1);  // 500 of the second are left
  EXPECT_EQ(link.FirstEnd()->transfer, 2);
  EXPECT_DOUBLE_EQ(link.FirstEnd()->time, 20);
  link.End(20, 2);
  EXPECT_FALSE(link.FirstEnd());
}

TEST(SharedLink, WhatNobodyWantsAnyMoreLeavesTheRestToTheOthers) {
  SharedLink link(100);
  link.Begin(0, 1, 1000);
  link.Begin(0, 2, 4000);
  link.End(10, 1);  // 500 of each have gone
  EXPECT_DOUBLE_EQ(link.FirstEnd()->time, 45);
}

}  // namespace
}  // namespace evald

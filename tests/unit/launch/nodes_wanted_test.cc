#include "orchestrator/launch/nodes_wanted.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

constexpr NodeCosts kCosts{.devices = 8, .start_s = 60, .useful_s = 60};

TEST(NodesWanted, NoneWithoutWork) { EXPECT_EQ(NodesWanted({0, 0, 0}, kCosts), 0); }

TEST(NodesWanted, OneIfNothingIsThere) {
  EXPECT_EQ(NodesWanted({1, 0, 0}, kCosts), 1);
  EXPECT_EQ(NodesWanted({0, 1, 0}, kCosts), 1);
}

TEST(NodesWanted, NoneForWorkThatEndsBeforeANodeWouldCome) {
  EXPECT_EQ(NodesWanted({8 * 60, 0, 8}, kCosts), 0);
  EXPECT_EQ(NodesWanted({0, 1, 8}, kCosts), 0);
}

TEST(NodesWanted, EachNodeHasWorkForAsLongAsItsStartCosts) {
  // 8 devices do 8 * 60 of it before another node comes. What is left keeps 4 nodes busy for 60 s.
  EXPECT_EQ(NodesWanted({8 * 60 + 4 * 8 * 60, 0, 8}, kCosts), 3);
  EXPECT_EQ(NodesWanted({4 * 8 * 60, 0, 0}, kCosts), 4);
  EXPECT_EQ(NodesWanted({4 * 8 * 60 - 1, 0, 0}, kCosts), 3);
}

TEST(NodesWanted, StaysFinite) {
  EXPECT_EQ(NodesWanted({1e300, 0, 0}, kCosts), 1'000'000);
  EXPECT_EQ(NodesWanted({1e300, 0, 0}, {.devices = 0, .start_s = 0, .useful_s = 0}), 1'000'000);
}

}  // namespace
}  // namespace evald

#include "orchestrator/simulate/score_pool.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(ScorePool, AsManyAtOnceAsThereAreSlots) {
  ScorePool pool(2);
  EXPECT_EQ(pool.Begin(), 0);
  EXPECT_EQ(pool.Begin(), 1);
  EXPECT_FALSE(pool.Begin());
  pool.End(1);
  EXPECT_EQ(pool.Begin(), 1);
  pool.End(1);
  EXPECT_FALSE(pool.idle());
  pool.End(0);
  EXPECT_TRUE(pool.idle());
  EXPECT_EQ(pool.Begin(), 1) << "it was free for longest";
}

TEST(ScorePool, SlotsThatAreGoneTakeNothing) {
  ScorePool pool(3);
  ASSERT_EQ(pool.Begin(), 0);
  ASSERT_EQ(pool.Begin(), 1);
  pool.Remove(1);
  EXPECT_EQ(pool.slots(), 1);
  EXPECT_FALSE(pool.Begin()) << "neither the one that was free nor the other";
  pool.End(1);
  EXPECT_FALSE(pool.Begin()) << "it is gone";
  pool.End(0);
  EXPECT_TRUE(pool.idle());
  EXPECT_EQ(pool.Begin(), 0);
}

}  // namespace
}  // namespace evald

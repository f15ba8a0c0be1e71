#include "orchestrator/simulate/score_pool.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(ScorePool, AsManyAtOnceAsThereAreSlots) {
  ScorePool pool(2);
  for (size_t task = 0; task < 3; ++task) pool.Add({task, 1, 1, false});
  ScoreJob job;
  EXPECT_EQ(pool.Begin(&job), 0);
  EXPECT_EQ(job.task, 0u);
  EXPECT_EQ(pool.Begin(&job), 1);
  EXPECT_EQ(job.task, 1u);
  EXPECT_FALSE(pool.Begin(&job));
  pool.End(1);
  EXPECT_EQ(pool.Begin(&job), 1);
  EXPECT_EQ(job.task, 2u);
  pool.End(1);
  EXPECT_FALSE(pool.idle());
  pool.End(0);
  EXPECT_TRUE(pool.idle());
}

TEST(ScorePool, WhatRunsProgramsGoesFirst) {
  ScorePool pool(1);
  pool.Add({0, 1, 1, false});
  pool.Add({1, 1, 1, true});
  pool.Add({2, 1, 1, true});
  std::vector<size_t> order;
  ScoreJob job;
  while (const auto slot = pool.Begin(&job)) {
    order.push_back(job.task);
    pool.End(*slot);
  }
  EXPECT_EQ(order, (std::vector<size_t>{1, 2, 0}));
}

TEST(ScorePool, SlotsThatAreGoneTakeNothing) {
  ScorePool pool(3);
  for (size_t task = 0; task < 4; ++task) pool.Add({task, 1, 1, false});
  ScoreJob job;
  ASSERT_EQ(pool.Begin(&job), 0);
  ASSERT_EQ(pool.Begin(&job), 1);
  pool.Remove(1);
  pool.Add(job);  // it ran on a slot that is gone
  EXPECT_FALSE(pool.Begin(&job)) << "neither the one that was free nor the other";
  std::vector<size_t> order;
  pool.End(0);
  while (const auto slot = pool.Begin(&job)) {
    EXPECT_EQ(*slot, 0);
    order.push_back(job.task);
    pool.End(*slot);
  }
  EXPECT_EQ(order, (std::vector<size_t>{2, 3, 1}));
  EXPECT_TRUE(pool.idle());
}

}  // namespace
}  // namespace evald

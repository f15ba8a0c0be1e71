#include "orchestrator/simulate/score_pool.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(ScorePool, AsManyAtOnceAsThereAreSlots) {
  ScorePool pool(2);
  for (size_t task = 0; task < 3; ++task) pool.Add({task, 1, 1, false});
  ScoreJob job;
  ASSERT_TRUE(pool.Begin(&job));
  EXPECT_EQ(job.task, 0u);
  ASSERT_TRUE(pool.Begin(&job));
  EXPECT_EQ(job.task, 1u);
  EXPECT_FALSE(pool.Begin(&job));
  pool.End();
  ASSERT_TRUE(pool.Begin(&job));
  EXPECT_EQ(job.task, 2u);
  pool.End();
  EXPECT_FALSE(pool.idle());
  pool.End();
  EXPECT_TRUE(pool.idle());
}

TEST(ScorePool, WhatRunsProgramsGoesFirst) {
  ScorePool pool(1);
  pool.Add({0, 1, 1, false});
  pool.Add({1, 1, 1, true});
  pool.Add({2, 1, 1, true});
  std::vector<size_t> order;
  for (ScoreJob job; pool.Begin(&job); pool.End()) order.push_back(job.task);
  EXPECT_EQ(order, (std::vector<size_t>{1, 2, 0}));
}

}  // namespace
}  // namespace evald

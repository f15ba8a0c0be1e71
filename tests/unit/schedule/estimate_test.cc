#include "orchestrator/schedule/estimate.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TaskEstimate Prior() {
  TaskEstimate prior;
  prior.name = "a task";
  prior.documents = 1000;
  prior.device_s = 2;
  prior.request_s = 40;
  prior.score_s = 1;
  prior.prefix_s = 0.25;
  return prior;
}

TEST(RunningEstimate, BeforeAnythingIsSeenThePriorHolds) {
  const TaskEstimate now = RunningEstimate(Prior(), 16).Now();
  EXPECT_EQ(now.name, "a task");
  EXPECT_EQ(now.documents, 1000);
  EXPECT_DOUBLE_EQ(now.device_s, 2);
  EXPECT_DOUBLE_EQ(now.request_s, 40);
  EXPECT_DOUBLE_EQ(now.score_s, 1);
  EXPECT_DOUBLE_EQ(now.prefix_s, 0.25);
}

TEST(RunningEstimate, AsManyDocumentsAsTheWeightMoveItHalfWay) {
  RunningEstimate estimate(Prior(), 16);
  estimate.SawGeneration(16, 16 * 6.0, 30);
  estimate.SawScoring(16, 16 * 3.0);
  EXPECT_DOUBLE_EQ(estimate.Now().device_s, 4);
  EXPECT_DOUBLE_EQ(estimate.Now().score_s, 2);
  EXPECT_DOUBLE_EQ(estimate.prior().device_s, 2);
}

TEST(RunningEstimate, ManyDocumentsOutweighAnyPrior) {
  RunningEstimate estimate(Prior(), 16);
  for (int i = 0; i < 1000; ++i) estimate.SawGeneration(16, 16 * 6.0, 3);
  EXPECT_NEAR(estimate.Now().device_s, 6, 0.01);
  EXPECT_LT(estimate.Now().request_s, 4) << "none was long, of very many";
}

TEST(RunningEstimate, TheLongestIsAtLeastTheLongestSeen) {
  RunningEstimate estimate(Prior(), 16);
  estimate.SawGeneration(1, 5, 90);
  estimate.SawGeneration(1, 5, 20);
  EXPECT_DOUBLE_EQ(estimate.Now().request_s, 90);
}

TEST(RunningEstimate, ALongOneMayBeAmongTheLastOfVeryMany) {
  TaskEstimate prior = Prior();
  prior.documents = 20000;
  RunningEstimate estimate(prior, 16);
  estimate.SawGeneration(10000, 10000, 20);
  EXPECT_GT(estimate.Now().request_s, 38) << "half of the documents are left";
  RunningEstimate guess(prior, 0.5);
  guess.SawGeneration(10000, 10000, 20);
  EXPECT_LT(guess.Now().request_s, 30) << "nobody has measured the task";
  estimate.SawGeneration(10000, 10000, 20);
  EXPECT_DOUBLE_EQ(estimate.Now().request_s, 20);
}

TEST(RunningEstimate, AFewShortOnesDoNotMakeTheLongestShort) {
  RunningEstimate estimate(Prior(), 16);
  estimate.SawGeneration(8, 8, 1);
  EXPECT_GT(estimate.Now().request_s, 35);
}

}  // namespace
}  // namespace evald

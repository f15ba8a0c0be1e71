#include "orchestrator/schedule/prior.h"

#include <gtest/gtest.h>

#include <vector>

namespace evald {
namespace {

const CostPlace kHere{"gpu", "m7", 14e9};

// A run of 10 documents.
TaskCost Ran(const std::string& task, const CostPlace& place, double device_s, double ended) {
  TaskCost cost;
  cost.task = task;
  cost.task_key = "key of " + task;
  cost.place = place;
  cost.ended = ended;
  cost.documents = 10;
  cost.device_s = device_s;
  cost.longest_s = device_s / 5;
  return cost;
}

TaskFacts Facts(const std::string& task, bool generates = true) {
  TaskFacts facts;
  facts.name = task;
  facts.key = "key of " + task;
  facts.generates = generates;
  facts.documents = 40;
  facts.tokens_in = 100;
  facts.tokens_out_most = 200;
  return facts;
}

TEST(EstimateTask, TheNewestRunHereCountsMost) {
  const std::vector<TaskCost> known = {Ran("t", kHere, 20, 100), Ran("t", kHere, 40, 200),
                                       Ran("other", kHere, 999, 300),
                                       Ran("t", {"cpu", "m7", 14e9}, 999, 400)};
  const Prior prior = EstimateTask(Facts("t"), kHere, 8, known);
  EXPECT_DOUBLE_EQ(prior.estimate.device_s, (4 + 2 / 2.0) / 1.5);
  EXPECT_DOUBLE_EQ(prior.estimate.request_s, 8) << "the longest that was seen";
  EXPECT_EQ(prior.estimate.documents, 40);
  EXPECT_EQ(prior.basis, "2 runs here");
  EXPECT_DOUBLE_EQ(prior.factor, (10 / 3.0) / 2) << "the older run was that far off";
}

TEST(EstimateTask, OfItsNameWithOtherDataIsTheNextBest) {
  TaskCost limited = Ran("t", kHere, 20, 100);
  limited.task_key = "key of t, 10 documents";
  const Prior prior =
      EstimateTask(Facts("t"), kHere, 8, {limited, Ran("t", {"gpu", "m1", 2e9}, 10, 200)});
  EXPECT_DOUBLE_EQ(prior.estimate.device_s, 2);
  EXPECT_EQ(prior.basis, "1 run here, with other data");
}

// A program says how long it may take; how long it took says more.
TEST(EstimateTask, ADeclaredTimeIsNextToItsOwnRuns) {
  TaskFacts facts = Facts("t");
  facts.declared_s = 600;
  const Prior declared = EstimateTask(facts, kHere, 8, {Ran("other", kHere, 20, 100)});
  EXPECT_DOUBLE_EQ(declared.estimate.device_s, 600);
  EXPECT_DOUBLE_EQ(declared.estimate.request_s, 600);
  EXPECT_EQ(declared.basis, "its time limit");
  EXPECT_DOUBLE_EQ(EstimateTask(facts, kHere, 8, {Ran("t", kHere, 20, 100)}).estimate.device_s, 2);
}

TEST(EstimateTask, AnotherModelIsScaledByItsWeights) {
  const Prior prior = EstimateTask(Facts("t"), kHere, 8, {Ran("t", {"gpu", "m1", 2e9}, 10, 100)});
  EXPECT_DOUBLE_EQ(prior.estimate.device_s, 7);
  EXPECT_EQ(prior.basis, "1 run with another model");
}

TEST(EstimateTask, TokensAtTheRatesOfOtherTasks) {
  // Two tasks that take 1 ms a token in and 20 ms a token out.
  TaskCost a = Ran("a", kHere, 0, 100), b = Ran("b", kHere, 0, 100);
  a.generates = b.generates = true;
  a.tokens_in = 1000, a.tokens_out = 50, a.device_s = 1 + 1;
  b.tokens_in = 500, b.tokens_out = 200, b.device_s = 0.5 + 4;
  const Prior unseen = EstimateTask(Facts("t"), kHere, 4, {a, b});
  EXPECT_NEAR(unseen.estimate.device_s, 0.1 + 0.3 * 200 * 0.02, 1e-9)
      << "30 % of the limit is guessed";
  EXPECT_NEAR(unseen.estimate.request_s, (0.1 + 200 * 0.02) * 4, 1e-9)
      << "the limit may be reached";
  EXPECT_EQ(unseen.basis, "tokens, at the rates of 2 runs of other tasks");
  // The tokens that it generated on another device hold here too.
  TaskCost elsewhere = Ran("t", {"cpu", "m7", 14e9}, 1000, 100);
  elsewhere.tokens_out = 10 * 30;
  EXPECT_NEAR(EstimateTask(Facts("t"), kHere, 4, {a, b, elsewhere}).estimate.device_s,
              0.1 + 30 * 0.02, 1e-9);
  // A model half as large is twice as fast.
  EXPECT_NEAR(EstimateTask(Facts("t"), {"gpu", "half", 7e9}, 4, {a, b}).estimate.device_s,
              (0.1 + 1.2) / 2, 1e-9);
}

TEST(EstimateTask, ASharedPrefixCostsItsTokensAtTheRateOfTokensIn) {
  TaskCost a = Ran("a", kHere, 0, 100), b = Ran("b", kHere, 0, 100);
  a.tokens_in = 1000, a.tokens_out = 50, a.device_s = 1 + 1;
  b.tokens_in = 500, b.tokens_out = 200, b.device_s = 0.5 + 4;
  TaskFacts facts = Facts("t");
  EXPECT_EQ(EstimateTask(facts, kHere, 4, {a, b}).estimate.prefix_s, 0);
  facts.prefix_tokens = 80;
  EXPECT_NEAR(EstimateTask(facts, kHere, 4, {a, b}).estimate.prefix_s, 80 * 0.001, 1e-9);
  EXPECT_NEAR(EstimateTask(facts, kHere, 4, {}).estimate.prefix_s, 80 * 14e9 / 1e12, 1e-9)
      << "a guess";
  // The rates are fitted to the task's own runs too.
  a.task_key = facts.key;
  const Prior known = EstimateTask(facts, kHere, 4, {a, b});
  EXPECT_EQ(known.basis, "1 run here");
  EXPECT_NEAR(known.estimate.prefix_s, 80 * 0.001, 1e-9);
}

TEST(EstimateTask, RatesAreNeverNegative) {
  // With least squares alone, the cost of tokens in would be negative.
  TaskCost a = Ran("a", kHere, 1, 100), b = Ran("b", kHere, 1, 100);
  a.tokens_in = 10, a.tokens_out = 100;
  b.tokens_in = 1000, b.tokens_out = 50;
  b.device_s = 0.2;
  TaskFacts facts = Facts("t", false);
  facts.tokens_in = 1e6;
  EXPECT_GE(EstimateTask(facts, kHere, 1, {a, b}).estimate.device_s, 0);
  EXPECT_GT(EstimateTask(Facts("t"), kHere, 1, {a, b}).estimate.device_s, 0);
}

TEST(EstimateTask, NothingKnownIsAGuessThatIsHeldLightly) {
  const Prior guess = EstimateTask(Facts("t"), kHere, 8, {});
  EXPECT_NEAR(guess.estimate.device_s, (100 + 60) * 2 * 7e9 / 1e12, 1e-9);
  EXPECT_EQ(guess.basis, "a guess");
  const Prior known = EstimateTask(Facts("t"), kHere, 8, {Ran("t", kHere, 20, 1)});
  EXPECT_GT(guess.factor, known.factor);
  EXPECT_LT(guess.weight, known.weight);
  TaskFacts nothing;
  EXPECT_GT(EstimateTask(nothing, {}, 1, {}).estimate.device_s, 0);
}

TEST(EstimateTask, ScoringIsTheSameEverywhere) {
  TaskCost ran = Ran("t", {"cpu", "another", 1e9}, 20, 100);
  ran.scored = 10;
  ran.score_s = 5;
  EXPECT_DOUBLE_EQ(EstimateTask(Facts("t"), kHere, 8, {ran}).estimate.score_s, 0.5);
  TaskFacts programs = Facts("u");
  programs.slow_scoring = true;
  EXPECT_GT(EstimateTask(programs, kHere, 8, {ran}).estimate.score_s,
            EstimateTask(Facts("u"), kHere, 8, {ran}).estimate.score_s);
}

}  // namespace
}  // namespace evald

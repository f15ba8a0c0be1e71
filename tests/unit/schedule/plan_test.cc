#include "orchestrator/schedule/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace evald {
namespace {

TEST(Plan, SlowScoringComesFirstThenTheLargerTask) {
  const std::vector<PlanTask> tasks = {{"small", {{0, 10}}, 1, false},
                                       {"large", {{0, 100}}, 10, false},
                                       {"code", {{0, 5}}, 1, true}};
  const auto trials = PlanTrials(tasks, {.workers = 1, .trials_per_worker = 4});
  ASSERT_FALSE(trials.empty());
  EXPECT_EQ(trials.front().slices.front().task, 2u);
  EXPECT_EQ(trials.back().slices.back().task, 0u);
}

TEST(Plan, SmallTasksShareATrialAndLargeOnesAreSplit) {
  std::vector<PlanTask> tasks;
  for (int i = 0; i < 57; ++i) tasks.push_back({"subject", {{0, 10}}, 1, false});
  tasks.push_back({"large", {{0, 1000}}, 10, false});
  const auto trials = PlanTrials(tasks, {.workers = 2, .trials_per_worker = 8});
  EXPECT_LT(trials.size(), 30u);
  EXPECT_GT(trials.size(), 15u);
}

TEST(Plan, WhatIsSlowToScoreBeginsSmall) {
  const auto trials = PlanTrials({{"code", {{0, 320}}, 1, true}}, {.workers = 2, .trials_per_worker = 8});
  std::vector<int64_t> sizes;
  for (const PlanTrial& trial : trials) sizes.push_back(trial.slices.front().documents.size());
  ASSERT_GT(sizes.size(), 9u);
  sizes.resize(9);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 5, 5, 10, 10, 20, 20, 20}));
}

TEST(Plan, EveryOpenDocumentIsInExactlyOneSlice) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<PlanTask> tasks(1 + random() % 8);
    std::map<std::pair<size_t, int64_t>, int> expected;
    for (size_t t = 0; t < tasks.size(); ++t) {
      tasks[t].cost_per_document = static_cast<double>(random() % 1000) / 10;
      tasks[t].slow_scoring = random() % 2 == 0;
      int64_t at = 0;
      for (unsigned r = 0; r < random() % 5; ++r) {
        at += 1 + random() % 5;
        const int64_t end = at + 1 + random() % 700;
        tasks[t].open.push_back({at, end});
        for (int64_t d = at; d < end; ++d) expected[{t, d}] = 1;
        at = end;
      }
    }
    PlanOptions options{.workers = static_cast<int>(1 + random() % 8), .trials_per_worker = 8};
    for (const PlanTrial& trial : PlanTrials(tasks, options)) {
      std::set<size_t> in_trial;
      for (const PlanSlice& slice : trial.slices) {
        EXPECT_TRUE(in_trial.insert(slice.task).second) << "one slice of a task in a trial";
        EXPECT_LE(slice.documents.size(), options.documents_per_slice_max);
        for (int64_t d = slice.documents.first; d < slice.documents.end; ++d) --expected[{slice.task, d}];
      }
    }
    for (const auto& [document, left] : expected) ASSERT_EQ(left, 0) << document.first << " " << document.second;
  }
}

TEST(Plan, EqualArgumentsGiveEqualPlans) {
  const std::vector<PlanTask> tasks = {{"a", {{0, 500}}, 3, false}, {"b", {{0, 77}}, 9, true}};
  const auto one = PlanTrials(tasks, {.workers = 3});
  const auto two = PlanTrials(tasks, {.workers = 3});
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].cost, two[i].cost);
}

TEST(Plan, NothingOpenGivesNoTrials) { EXPECT_TRUE(PlanTrials({{"a", {}, 1, false}}, {}).empty()); }

}  // namespace
}  // namespace evald

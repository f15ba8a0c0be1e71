#include "orchestrator/schedule/open_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

TaskEstimate Costs(double device_s) {
  TaskEstimate estimate;
  estimate.name = "a task";
  estimate.device_s = device_s;
  return estimate;
}

using Ranges = std::vector<DocumentRange>;

TEST(OpenWork, TakesTheNextDocumentsAcrossRanges) {
  OpenWork work(2, 4, 8);
  work.Add(Costs(0.5), {{0, 3}, {10, 20}});
  EXPECT_EQ(work.documents(), 13);
  EXPECT_DOUBLE_EQ(work.device_s(), 6.5);
  EXPECT_EQ(work.Take(0, 5), (Ranges{{0, 3}, {10, 12}}));
  EXPECT_EQ(work.open(0), 8);
  EXPECT_DOUBLE_EQ(work.device_s(), 4);
  EXPECT_EQ(work.Take(0, 100), (Ranges{{12, 20}}));
  EXPECT_EQ(work.Take(0, 1), Ranges{});
  EXPECT_EQ(work.documents(), 0);
  EXPECT_EQ(work.device_s(), 0);
}

TEST(OpenWork, WhatIsPutBackIsNext) {
  OpenWork work(1, 1, 1);
  work.Add(Costs(1), {{0, 100}});
  work.Take(0, 50);
  work.PutBack(0, {20, 30});
  work.PutBack(0, {5, 7});
  EXPECT_EQ(work.Take(0, 15), (Ranges{{5, 7}, {20, 30}, {50, 53}}));
}

TEST(OpenWork, WhatIsPutBackBeforeTheNextIsOneRangeWithIt) {
  OpenWork work(1, 1, 1);
  work.Add(Costs(1), {{0, 100}});
  work.Take(0, 50);
  work.PutBack(0, {40, 50});
  EXPECT_EQ(work.ranges(0), (Ranges{{40, 100}}));
  work.PutBack(0, {7, 7});
  EXPECT_EQ(work.open(0), 60);
}

TEST(OpenWork, SumsAreThoseOfItsTasksWhateverTheyOnceCost) {
  std::mt19937_64 random(1);
  OpenWork work(1, 1, 1);
  std::vector<double> costs;
  std::vector<int64_t> open;
  for (int step = 0; step < 3000; ++step) {
    const size_t task = costs.empty() ? 0 : random() % costs.size();
    const double cost = std::vector<double>{0, 1e-9, 1, 1e12}[random() % 4];
    switch (random() % 4) {
      case 0:
        costs.push_back(cost);
        open.push_back(static_cast<int64_t>(random() % 50));
        work.Add(Costs(cost), {{0, open.back()}});
        break;
      case 1:
        if (costs.empty()) break;
        work.Expect(task, Costs(cost));
        costs[task] = cost;
        break;
      case 2:
        if (costs.empty()) break;
        for (const DocumentRange& range : work.Take(task, static_cast<int64_t>(random() % 60)))
          open[task] -= range.size();
        break;
      default:
        if (costs.empty()) break;
        work.PutBack(task, {1000, 1003});
        open[task] += 3;
    }
    double seconds = 0;
    int64_t documents = 0;
    size_t first = costs.size();
    for (size_t t = costs.size(); t-- > 0;) {
      ASSERT_EQ(work.open(t), open[t]);
      seconds += costs[t] * static_cast<double>(open[t]);
      documents += open[t];
      if (open[t] > 0 && t >= task) first = t;
    }
    ASSERT_EQ(work.documents(), documents);
    ASSERT_NEAR(work.device_s(), seconds, seconds * 1e-12);
    ASSERT_EQ(work.FirstOpen(task), first);
  }
}

TEST(OpenWork, TellsWhichTasksChanged) {
  OpenWork work(1, 1, 1);
  EXPECT_FALSE(work.ChangedSince(-1)) << "whoever has seen nothing has to look at everything";
  work.Add(Costs(1), {{0, 10}});
  work.Add(Costs(1), {{0, 10}});
  const int64_t seen = work.revision();
  EXPECT_TRUE(work.ChangedSince(seen)->empty());
  work.Take(1, 1);
  work.Expect(0, Costs(2));
  const auto changed = work.ChangedSince(seen);
  ASSERT_TRUE(changed);
  EXPECT_EQ(std::vector<size_t>(changed->begin(), changed->end()), (std::vector<size_t>{1, 0}));
}

TEST(OpenWork, ForgetsChangesOfLongAgo) {
  OpenWork work(1, 1, 1);
  work.Add(Costs(1), {{0, 10}});
  const int64_t seen = work.revision();
  int64_t before = seen;
  for (int i = 0; i < 20'000; ++i) {
    work.Expect(0, Costs(i));
    ASSERT_EQ(work.revision(), before + 1);
    before = work.revision();
    ASSERT_EQ(work.ChangedSince(before - 1)->size(), 1u) << "never the latest";
  }
  EXPECT_FALSE(work.ChangedSince(seen));
}

TEST(OpenWork, RefusesEstimatesThatAreNoNumbers) {
  OpenWork work(1, 1, 1);
  work.Add(Costs(1), {{0, 10}});
  const double bad[] = {std::nan(""), std::numeric_limits<double>::infinity(), -1};
  for (const double value : bad) {
    EXPECT_THROW(work.Expect(0, Costs(value)), Error);
    EXPECT_THROW(work.Add(Costs(value), {{0, 1}}), Error);
    TaskEstimate scoring = Costs(1);
    scoring.score_s = value;
    EXPECT_THROW(work.Expect(0, scoring), Error);
  }
  EXPECT_DOUBLE_EQ(work.device_s(), 10) << "nothing of what was refused is left";
  EXPECT_EQ(work.tasks(), 1u);
  const Error e = Caught([&] { work.Expect(0, Costs(-1)); });
  EXPECT_STREQ(e.what(),
               "estimate of task 'a task': device_s is -1, expected a finite number from 0 on");
}

}  // namespace
}  // namespace evald

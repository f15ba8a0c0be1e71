#include "orchestrator/schedule/policy.h"

#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

TaskEstimate Costs(int dataset, double device_s, double request_s = 0, double score_s = 0) {
  TaskEstimate estimate;
  estimate.dataset = dataset;
  estimate.size = 1;
  estimate.device_s = device_s;
  estimate.request_s = request_s;
  estimate.score_s = score_s;
  return estimate;
}

std::vector<std::pair<size_t, int64_t>> Pairs(const std::vector<Cut>& cuts) {
  std::vector<std::pair<size_t, int64_t>> pairs;
  for (const Cut& cut : cuts) pairs.emplace_back(cut.task, cut.documents);
  return pairs;
}

using Trial = std::vector<std::pair<size_t, int64_t>>;

std::vector<Trial> WorkedOff(Policy* policy, OpenWork* work, int device) {
  std::vector<Trial> trials;
  for (;;) {
    const std::vector<Cut> cuts = policy->Next(*work, device);
    if (cuts.empty()) return trials;
    for (const Cut& cut : cuts) work->Take(cut.task, cut.documents);
    trials.push_back(Pairs(cuts));
  }
}

TEST(MakePolicy, NamesAllAndRefusesOthers) {
  for (const std::string& name : PolicyNames()) EXPECT_EQ(MakePolicy(name)->name(), name);
  const Error e = Caught([&] { MakePolicy("elastik"); });
  EXPECT_EQ(e.kind(), ErrorKind::kUsage);
  EXPECT_NE(std::string(e.what()).find("'elastik'"), std::string::npos);
  EXPECT_NE(std::string(e.what()).find("round-robin"), std::string::npos);
}

TEST(Elastic, OfALittleKnownTaskADeviceIsFilledOnce) {
  for (const auto& [doubt, documents] : {std::pair{1.0, 15}, {2.0, 7}, {30.0, 8}}) {
    OpenWork work(2, 8, 1);
    TaskEstimate estimate = Costs(0, 1);
    estimate.doubt = doubt;
    work.Add(estimate, {{0, 1000}});
    EXPECT_EQ(Pairs(MakePolicy("elastic")->Next(work, 0)), (Trial{{0, documents}})) << doubt;
  }
  OpenWork few(8, 8, 1);
  TaskEstimate estimate = Costs(0, 1);
  estimate.doubt = 30;
  few.Add(estimate, {{0, 16}});
  EXPECT_EQ(Pairs(MakePolicy("elastic")->Next(few, 0)), (Trial{{0, 2}})) << "some for every device";
}

TEST(Coupled, OneDatasetATrialInTheOrderOfTheList) {
  OpenWork work(2, 1, 1);
  work.Add(Costs(0, 1), {{0, 5}});
  work.Add(Costs(1, 9), {{0, 7}});
  work.Add(Costs(1, 9), {{0, 3}});
  work.Add(Costs(2, 1), {{0, 2}});
  for (const char* name : {"coupled", "coupled+staged", "decoupled-fifo"}) {
    OpenWork left = work;
    EXPECT_EQ(WorkedOff(MakePolicy(name).get(), &left, 1),
              (std::vector<Trial>{{{0, 5}}, {{1, 7}, {2, 3}}, {{3, 2}}}));
  }
}

TEST(RoundRobin, LongScoringFirstThenTheLargestInTurn) {
  OpenWork work(2, 1, 1);
  work.Add(Costs(0, 1), {{0, 8}});          // 8 s
  work.Add(Costs(1, 1), {{0, 1}});          // 1 s
  work.Add(Costs(2, 0.5, 0, 1), {{0, 2}});  // 1 s, and 2 s to score
  // A quarter of a device's share of 10 s is 1.25 s, so the first task is cut into 7 parts.
  const auto policy = MakePolicy("round-robin");
  const Trial first = Pairs(policy->Next(work, 0));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first.front(), (std::pair<size_t, int64_t>{2, 2}));
  const Trial second = Pairs(policy->Next(work, 1));
  EXPECT_EQ(second.front(), (std::pair<size_t, int64_t>{0, 2}));
}

TEST(RoundRobin, WhatBelongedToALostDeviceIsDealtAgain) {
  OpenWork work(4, 1, 1);
  work.Add(Costs(0, 1), {{0, 64}});
  const auto policy = MakePolicy("round-robin");
  for (const Cut& cut : policy->Next(work, 0)) work.Take(cut.task, cut.documents);
  work.SetDevices(1);
  const std::vector<Trial> left = WorkedOff(policy.get(), &work, 0);
  EXPECT_EQ(left.size(), 15u);
  EXPECT_EQ(work.documents(), 0);
}

TEST(RoundRobin, ADeviceThatCameLaterSharesAQueue) {
  OpenWork work(1, 1, 1);
  work.Add(Costs(0, 1), {{0, 16}});
  const auto policy = MakePolicy("round-robin");
  EXPECT_FALSE(policy->Next(work, 0).empty());
  work.SetDevices(3);
  EXPECT_FALSE(policy->Next(work, 2).empty());
}

TEST(SizeSplit, EqualPartsByRowsAndSmallOnesTogether) {
  OpenWork work(1, 1, 1);
  work.Add(Costs(0, 1), {{0, 80}});
  for (int i = 1; i <= 4; ++i) work.Add(Costs(i, 1), {{0, 8}});
  // A quarter of 112 rows is 28: three parts, then three small ones together.
  EXPECT_EQ(
      WorkedOff(MakePolicy("size-split").get(), &work, 0),
      (std::vector<Trial>{{{0, 27}}, {{0, 27}}, {{0, 26}}, {{1, 8}, {2, 8}, {3, 8}}, {{4, 8}}}));
}

TEST(Elastic, WhatTakesLongAfterwardsFirst) {
  OpenWork work(1, 1, 4);
  work.Add(Costs(0, 1, 1), {{0, 1000}});
  work.Add(Costs(1, 1, 50), {{0, 1000}});      // a long request
  work.Add(Costs(2, 1, 1, 100), {{0, 1000}});  // long scoring
  const auto policy = MakePolicy("elastic");
  std::vector<size_t> order;
  for (const Trial& trial : WorkedOff(policy.get(), &work, 0)) {
    if (order.empty() || order.back() != trial.front().first) order.push_back(trial.front().first);
  }
  EXPECT_EQ(order, (std::vector<size_t>{2, 1, 0}));
}

TEST(Elastic, TrialsShrinkTowardsTheEnd) {
  OpenWork work(2, 1, 1);
  work.Add(Costs(0, 0.1), {{0, 1000}});
  const std::vector<Trial> trials = WorkedOff(MakePolicy("elastic").get(), &work, 0);
  EXPECT_EQ(trials.front(), (Trial{{0, 125}})) << "a quarter of half";
  for (size_t i = 1; i + 1 < trials.size(); ++i)
    EXPECT_LE(trials[i].front().second, trials[i - 1].front().second);
  EXPECT_LE(trials.back().front().second, 6)
      << "not less than what a lease of 5 ms is 1 % of, and what is left of it";
}

TEST(Elastic, SmallTasksShareATrial) {
  OpenWork work(1, 1, 1);
  for (int i = 0; i < 40; ++i) work.Add(Costs(i, 0.01), {{0, 10}});
  const std::vector<Trial> trials = WorkedOff(MakePolicy("elastic").get(), &work, 0);
  EXPECT_GE(trials.front().size(), 5u);
  EXPECT_LT(trials.size(), 20u);
}

TEST(Elastic, ADearPrefixIsSharedByMoreDocuments) {
  OpenWork plain(8, 1, 1), prefixed(8, 1, 1);
  TaskEstimate estimate = Costs(0, 0.01);
  plain.Add(estimate, {{0, 20'000}});
  estimate.prefix_s = 0.1;
  prefixed.Add(estimate, {{0, 20'000}});
  const int64_t without = MakePolicy("elastic")->Next(plain, 0).front().documents;
  const int64_t with = MakePolicy("elastic")->Next(prefixed, 0).front().documents;
  EXPECT_GT(with, without);
  EXPECT_GE(static_cast<double>(with) * 0.01, 10) << "0.1 s are 1 % of it";
}

// Each of eight devices computes a prefix of 20 s. With trials of 15 s the prefix would be most of
// their work.
TEST(Elastic, APrefixDearerThanATrialMakesTrialsLonger) {
  OpenWork work(8, 1, 1);
  TaskEstimate estimate = Costs(0, 0.5);
  estimate.prefix_s = 20;
  work.Add(estimate, {{0, 8000}});  // 500 s of each device
  const std::vector<Trial> trials = WorkedOff(MakePolicy("elastic").get(), &work, 0);
  EXPECT_EQ(trials.front(), (Trial{{0, 400}})) << "ten times the prefix, and no more";
  EXPECT_LE(static_cast<double>(trials.size()) * 20, 0.3 * 4000) << "what is computed again";
  for (size_t i = 0; i + 1 < trials.size(); ++i)
    EXPECT_GE(trials[i].front().second, 40) << "none is mostly prefix";
}

TEST(Elastic, WhereHalfAShareIsNotWorthThePrefixADeviceTakesAllOfIt) {
  OpenWork work(4, 1, 1);
  TaskEstimate estimate = Costs(0, 0.5);
  estimate.prefix_s = 20;
  work.Add(estimate, {{0, 640}});  // 80 s of each device, four times the prefix
  EXPECT_EQ(MakePolicy("elastic")->Next(work, 0).front().documents, 160);
  OpenWork more(4, 1, 1);
  more.Add(estimate, {{0, 1440}});
  EXPECT_EQ(MakePolicy("elastic")->Next(more, 0).front().documents, 180) << "half of 180 s";
}

TEST(Elastic, ATaskIsTriedOutWithAsMuchAsIsWorthItsPrefix) {
  for (const auto& [prefix_s, documents] : {std::pair{0.0, 4}, {5.0, 20}}) {
    OpenWork work(1, 16, 1);
    TaskEstimate estimate = Costs(0, 1, 60);
    estimate.documents = 640;
    estimate.prefix_s = prefix_s;
    work.Add(estimate, {{0, 640}});
    EXPECT_EQ(MakePolicy("elastic")->Next(work, 0).front().documents, documents);
  }
}

TEST(Elastic, WhatMayHaveALongTailIsTriedOutFirst) {
  OpenWork work(1, 16, 1);
  for (const double request_s : {90.0, 40.0, 60.0, 1.0}) {
    TaskEstimate estimate = Costs(static_cast<int>(work.tasks()), 1, request_s);
    estimate.documents = 100;
    work.Add(estimate, {{0, 100}});
  }
  const std::vector<Trial> trials = WorkedOff(MakePolicy("elastic").get(), &work, 0);
  ASSERT_GT(trials.size(), 4u);
  EXPECT_EQ(trials[0], (Trial{{0, 4}})) << "a quarter of the places";
  EXPECT_EQ(trials[1], (Trial{{2, 4}}));
  EXPECT_EQ(trials[2], (Trial{{1, 4}}));
  EXPECT_EQ(trials[3].front().first, 0u) << "then the longest in bulk";
}

TEST(Elastic, FollowsWhatIsExpectedNow) {
  OpenWork work(1, 1, 1);
  work.Add(Costs(0, 1, 10), {{0, 1000}});
  work.Add(Costs(1, 1, 20), {{0, 1000}});
  const auto policy = MakePolicy("elastic");
  EXPECT_EQ(policy->Next(work, 0).front().task, 1u);
  work.Expect(0, Costs(0, 1, 30));
  EXPECT_EQ(policy->Next(work, 0).front().task, 0u);
}

}  // namespace
}  // namespace evald

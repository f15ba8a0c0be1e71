#include "orchestrator/schedule/time_left.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

constexpr double kLeaseSeconds = 1;

TaskEstimate TaskOf(double device_s, double request_s, double prefix_s = 0) {
  TaskEstimate estimate;
  estimate.documents = 100;
  estimate.device_s = device_s;
  estimate.request_s = request_s;
  estimate.prefix_s = prefix_s;
  return estimate;
}

// Task 0 has long requests, task 1 a prefix, task 2 short requests.
OpenWork WorkOfThree() {
  OpenWork work(1, 8, 1);
  work.Add(TaskOf(2, 30), {{0, 100}});
  work.Add(TaskOf(1, 4, 10), {{0, 100}});
  work.Add(TaskOf(0.5, 1), {{0, 100}});
  return work;
}

std::vector<std::pair<size_t, int64_t>> Fit(const OpenWork& work, const std::vector<Cut>& cuts,
                                            double seconds, double slow = 1) {
  std::vector<std::pair<size_t, int64_t>> fit;
  for (const Cut& cut : CutToFit(work, cuts, kLeaseSeconds, slow, seconds))
    fit.emplace_back(cut.task, cut.documents);
  return fit;
}

using Cuts = std::vector<std::pair<size_t, int64_t>>;

TEST(TimeLeft, ATrialTakesALeaseTheLongestRequestThePrefixesAndItsDocuments) {
  const OpenWork work = WorkOfThree();
  TrialSeconds trial(work, kLeaseSeconds);
  trial.Add(0, 3);
  trial.Add(1, 5);
  trial.Add(1, 1);
  EXPECT_DOUBLE_EQ(trial.total(), 1 + 30 + 3 * 2 + 10 + 6);
}

TEST(TimeLeft, ACutIsShortenedToWhatFits) {
  const OpenWork work = WorkOfThree();
  EXPECT_EQ(Fit(work, {{0, 10}}, 1000), (Cuts{{0, 10}}));
  EXPECT_EQ(Fit(work, {{0, 10}}, 1 + 30 + 7), (Cuts{{0, 3}}));
  EXPECT_EQ(Fit(work, {{0, 10}}, 2 * (1 + 30 + 7), 2), (Cuts{{0, 3}})) << "on a slow device";
  EXPECT_EQ(Fit(work, {{2, 4}, {1, 4}}, 1 + 1 + 2 + 3 + 10 + 2), (Cuts{{2, 4}, {1, 2}}));
  EXPECT_EQ(Fit(work, {{0, 4}, {2, 4}}, 5), (Cuts{{2, 4}})) << "the first does not fit at all";
}

TEST(TimeLeft, ATaskWithShorterRequestsIsTakenIfNothingElseFits) {
  const OpenWork work = WorkOfThree();
  EXPECT_EQ(Fit(work, {{0, 10}}, 20), (Cuts{{1, 5}})) << "the longest request that fits";
  EXPECT_EQ(Fit(work, {{0, 10}}, 4), (Cuts{{2, 4}}));
  EXPECT_EQ(Fit(work, {{0, 10}}, 2.4), Cuts());
  EXPECT_EQ(Fit(work, {{0, 10}}, -3), Cuts());
}

TEST(TimeLeft, TheShortestTrialIsOneDocument) {
  OpenWork work = WorkOfThree();
  EXPECT_DOUBLE_EQ(*ShortestTrialSeconds(work, kLeaseSeconds), 2.5);
  work.Take(2, 100);
  EXPECT_DOUBLE_EQ(*ShortestTrialSeconds(work, kLeaseSeconds), 16);
  work.Take(0, 100);
  work.Take(1, 100);
  EXPECT_FALSE(ShortestTrialSeconds(work, kLeaseSeconds));
}

TEST(TimeLeft, AMetricProcessEndsItsJobAfterTenSecondsAndTheDocumentUnderWay) {
  TaskEstimate estimate;
  estimate.score_s = 3;
  EXPECT_DOUBLE_EQ(JobSeconds(estimate, 2), 6);
  EXPECT_DOUBLE_EQ(JobSeconds(estimate, 200), 13);
}

}  // namespace
}  // namespace evald

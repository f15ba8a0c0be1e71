#include "orchestrator/schedule/backups.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace evald {
namespace {

const auto kNothingNew = [](int) {};

TEST(FreshSeconds, ALeaseTheLongestRequestAndAllDocuments) {
  TaskEstimate estimate;
  estimate.documents = 100;
  estimate.device_s = 0.5;
  estimate.request_s = 8;
  Corrections costs;
  costs.Add({estimate, 1000});
  estimate.request_s = 3;
  costs.Add({estimate, 1000});
  FreshSeconds fresh(0.25);
  fresh.Add(costs, 0, 10);
  fresh.Add(costs, 1, 4);
  EXPECT_DOUBLE_EQ(fresh.total(), 0.25 + 8 + 5 + 2);
}

TEST(FreshSeconds, WhatDocumentsShareIsComputedOnceForEachTask) {
  TaskEstimate estimate;
  estimate.documents = 100;
  estimate.device_s = 0.5;
  estimate.prefix_s = 20;
  Corrections costs;
  costs.Add({estimate, 1000});
  costs.Add({estimate, 1000});
  FreshSeconds fresh(0);
  fresh.Add(costs, 0, 10);  // two slices of one task
  fresh.Add(costs, 0, 10);
  EXPECT_DOUBLE_EQ(fresh.total(), 20 + 10);
  fresh.Add(costs, 1, 10);
  EXPECT_DOUBLE_EQ(fresh.total(), 20 + 10 + 20 + 5);
}

TEST(FreshSeconds, ARequestThatHasNotEndedSaysNothingOfOtherDevices) {
  TaskEstimate estimate;
  estimate.documents = 100;
  estimate.request_s = 8;
  OpenWork work(1, 1, 1);
  work.Add(estimate, {});
  Corrections costs;
  costs.Add({estimate, 1000});
  costs.Overdue(0, 90, &work);
  EXPECT_DOUBLE_EQ(costs.Now(0).request_s, 90);
  FreshSeconds fresh(0);
  fresh.Add(costs, 0, 1);
  EXPECT_DOUBLE_EQ(fresh.total(), 8);
}

// The trial takes 4 s elsewhere. It is late once it has been under way for more than twice that and
// a second.
TEST(Backups, WhatIsUnderWayForLongIsExpectedToBeForAsLongAgain) {
  Backups backups(1);
  backups.Report(10, 3, {{7, 10, 4}});
  EXPECT_DOUBLE_EQ(backups.next_at().value(), 19);
  EXPECT_FALSE(backups.Next(18.9, 0, kNothingNew));
  const auto late = backups.Next(19, 0, kNothingNew);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->trial, 7);
  EXPECT_EQ(late->device, 3);
}

// Heartbeats may be made up: the device says that its requests end, and no slice ever comes.
TEST(Backups, ATrialOfWhichNoSliceComesIsLateInTheEnd) {
  Backups backups(1);
  const auto report = [&](double now) { backups.Report(now, 0, {{7, now, 5, 0}}); };
  report(99);
  EXPECT_FALSE(backups.Next(99, 1, [&](int) { report(99); }));
  report(101);
  const auto late = backups.Next(101, 1, [&](int) { report(101); });
  ASSERT_TRUE(late);
  EXPECT_EQ(late->trial, 7);
  EXPECT_EQ(late->at, 8 * 5 + 60);
}

TEST(Backups, ADeviceIsExpectedToBeAsSlowAsItHasBeen) {
  Backups backups(1);
  backups.Measured(0, 99, 99);
  backups.Measured(1, 99, 99);
  backups.Measured(2, 9, 99);
  EXPECT_NEAR(backups.slowness(2), 100 / (1 + 9 * 297.0 / 207), 1e-9)
      << "of what all of them took for what was expected";
  EXPECT_LT(backups.slowness(0), 1);
  backups.Report(10, 2, {{7, 10, 4}});
  EXPECT_TRUE(backups.Next(10, 0, kNothingNew)) << "at once: it will take 28 s where others take 4";
  // Little is left of the work that the device has had for long.
  backups.Report(30, 2, {{7, 10, 4}});
  EXPECT_TRUE(backups.Next(30, 0, kNothingNew)) << "it is late by its age";
  backups.Report(30, 2, {{8, 2, 4}, {9, 29, 0.1}});
  EXPECT_EQ(backups.Next(30, 0, kNothingNew)->trial, 8);
  EXPECT_EQ(Backups(1).slowness(5), 1);
}

TEST(Backups, AShortDelayIsNotWorthABackup) {
  Backups backups(1);
  backups.Measured(0, 100, 100);
  backups.Measured(1, 10, 100);
  backups.Report(0, 1, {{7, 0, 0.05}});
  EXPECT_FALSE(backups.Next(0.5, 0, kNothingNew));
  EXPECT_TRUE(backups.Next(1.2, 0, kNothingNew));
}

TEST(Backups, NobodyBacksUpItsOwnTrial) {
  Backups backups(1);
  backups.Report(0, 1, {{7, 0, 1}});
  EXPECT_FALSE(backups.Next(100, 1, kNothingNew));
  backups.Report(0, 2, {{8, 0, 2}});
  EXPECT_EQ(backups.Next(100, 1, kNothingNew)->trial, 8);
  EXPECT_EQ(backups.Next(100, 0, kNothingNew)->trial, 7) << "due for longer";
}

TEST(Backups, WhatIsReportedAnewBeforeItIsGivenMayBeGone) {
  Backups backups(1);
  backups.Report(0, 1, {{7, 0, 1}});
  backups.Report(0, 2, {{8, 0, 2}});
  std::vector<int> asked;
  const auto late = backups.Next(100, 0, [&](int device) {
    asked.push_back(device);
    if (device == 1) backups.Report(100, 1, {});
    if (device == 2) backups.Report(100, 2, {{8, 0, 2}});
  });
  ASSERT_TRUE(late);
  EXPECT_EQ(late->trial, 8);
  EXPECT_EQ(asked.front(), 1) << "the one that said nothing for longest";
  backups.Forget(2);
  EXPECT_FALSE(backups.Next(1000, 0, kNothingNew));
  EXPECT_FALSE(backups.next_at());
  backups.Forget(17);
}

// A trial failed on one device and ended on another. Neither has reported since.
TEST(Backups, AnotherDevicesReportDoesNotConfirmATrial) {
  Backups backups(1);
  backups.Report(0, 1, {{7, -20, 1}});
  backups.Report(0, 2, {{7, -10, 1}});
  EXPECT_FALSE(backups.Next(1, 0, [&](int device) { backups.Report(1, device, {}); }))
      << "no device has it";
}

// Compared with a plain search through all trials.
TEST(Backups, TheFirstIsAlwaysTheOneDueForLongest) {
  std::mt19937_64 random(5);
  Backups backups(1);
  std::map<int, std::vector<BegunTrial>> begun;
  double now = 0;
  int64_t trials = 0, late_ones = 0;
  for (int step = 0; step < 20000; ++step) {
    now += static_cast<double>(random() % 1000) / 1000;
    const int device = static_cast<int>(random() % 12);
    if (random() % 2 == 0) {
      std::vector<BegunTrial>& of = begun[device];
      of.clear();
      for (uint64_t i = 0; i < random() % 4; ++i) {
        of.push_back({trials++, now - static_cast<double>(random() % 10),
                      static_cast<double>(random() % 10)});
      }
      backups.Report(now, device, of);
      continue;
    }
    double first = now;
    bool any = false;
    for (const auto& [other, of] : begun) {
      for (const BegunTrial& trial : of) {
        const double at = trial.since + 2 * trial.fresh_s + 1;
        if (other == device || at > first) continue;
        first = at;
        any = true;
      }
    }
    const auto late = backups.Next(now, device, kNothingNew);
    ASSERT_EQ(late.has_value(), any);
    if (!late) continue;
    ++late_ones;
    ASSERT_NE(late->device, device);
    ASSERT_DOUBLE_EQ(late->at, first);
  }
  EXPECT_GT(late_ones, 1000);
}

}  // namespace
}  // namespace evald

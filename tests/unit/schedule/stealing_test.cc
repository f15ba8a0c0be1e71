#include "orchestrator/schedule/stealing.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace evald {
namespace {

// expected time of a document of the task
constexpr size_t kSecond = 0, kTenth = 1, kFree = 2;

OpenWork Work() {
  OpenWork work(4, 1, 1);
  for (const double device_s : {1.0, 0.1, 0.0}) {
    TaskEstimate estimate;
    estimate.device_s = device_s;
    work.Add(estimate, {});
  }
  return work;
}

TEST(Stealing, NobodyHasAnything) {
  Stealing stealing(0.1);
  EXPECT_FALSE(stealing.Next(0, 0));
  stealing.Report(0, 3, {}, Work());
  EXPECT_FALSE(stealing.Next(0, 0));
  stealing.Forget(17);
}

TEST(Stealing, TheLastHalfOfWhoeverIsFurthestBehind) {
  Stealing stealing(0.1);
  stealing.Report(0, 1, {{7, 0, kTenth, {0, 50}}}, Work());
  stealing.Report(0, 2, {{8, 3, kSecond, {10, 18}}}, Work());
  const auto theft = stealing.Next(0, 0);
  ASSERT_TRUE(theft);
  EXPECT_EQ(theft->device, 2);
  EXPECT_EQ(theft->documents, (std::vector<WaitingDocuments>{{8, 3, kSecond, {14, 18}}}));
}

TEST(Stealing, HalfIsMeasuredInSecondsAcrossSlices) {
  Stealing stealing(0.1);
  // 4 s, 2 s, 2 s. Half of these 8 s are the last two slices.
  stealing.Report(0, 1, {{7, 0, kSecond, {0, 4}}, {7, 1, kTenth, {0, 20}}, {9, 0, kSecond, {6, 8}}},
                  Work());
  EXPECT_EQ(stealing.Next(0, 0)->documents,
            (std::vector<WaitingDocuments>{{7, 1, kTenth, {0, 20}}, {9, 0, kSecond, {6, 8}}}));
}

TEST(Stealing, NobodyStealsFromItself) {
  Stealing stealing(0.1);
  stealing.Report(0, 1, {{7, 0, kSecond, {0, 9}}}, Work());
  EXPECT_FALSE(stealing.Next(0, 1));
  stealing.Report(0, 2, {{8, 0, kSecond, {0, 3}}}, Work());
  EXPECT_EQ(stealing.Next(0, 1)->device, 2);
}

TEST(Stealing, AReportAgesASecondASecond) {
  Stealing stealing(0.5);
  stealing.Report(100, 1, {{7, 0, kSecond, {0, 8}}}, Work());
  EXPECT_EQ(stealing.Next(104, 0)->documents,
            (std::vector<WaitingDocuments>{{7, 0, kSecond, {6, 8}}}));
  EXPECT_TRUE(stealing.Next(107.4, 0)) << "0.6 s are left";
  EXPECT_FALSE(stealing.Next(107.6, 0)) << "0.4 s are not worth a lease";
}

TEST(Stealing, OneDocumentAtLeastIsTaken) {
  Stealing stealing(0.1);
  stealing.Report(0, 1, {{7, 0, kSecond, {5, 6}}}, Work());
  EXPECT_EQ(stealing.Next(0, 0)->documents,
            (std::vector<WaitingDocuments>{{7, 0, kSecond, {5, 6}}}));
}

TEST(Stealing, ANewReportReplacesTheOldAndWhoIsGoneHasNothing) {
  Stealing stealing(0.1);
  const OpenWork work = Work();
  stealing.Report(0, 1, {{7, 0, kSecond, {0, 8}}}, work);
  stealing.Report(1, 1, {{7, 0, kSecond, {6, 8}}}, work);
  EXPECT_EQ(stealing.Next(1, 0)->documents,
            (std::vector<WaitingDocuments>{{7, 0, kSecond, {7, 8}}}));
  stealing.Forget(1);
  EXPECT_FALSE(stealing.Next(1, 0));
}

TEST(Stealing, WhatIsExpectedToTakeNoTimeIsNotWorthALease) {
  Stealing stealing(0.1);
  stealing.Report(0, 1, {{7, 0, kFree, {0, 1000}}}, Work());
  EXPECT_FALSE(stealing.Next(0, 0));
  // After a slice that does take time, it is taken along.
  stealing.Report(0, 1, {{7, 0, kSecond, {0, 4}}, {7, 1, kFree, {0, 1000}}}, Work());
  EXPECT_EQ(stealing.Next(0, 0)->documents,
            (std::vector<WaitingDocuments>{{7, 0, kSecond, {2, 4}}, {7, 1, kFree, {0, 1000}}}));
}

// Of 12 s the thief takes 5, and computes 2 s of prefix again. Both then end after 7 s.
TEST(Stealing, WhatTheThiefComputesAgainIsPartOfWhatTheyShare) {
  OpenWork work(4, 1, 1);
  TaskEstimate estimate;
  estimate.device_s = 1;
  estimate.prefix_s = 2;
  work.Add(estimate, {});
  Stealing stealing(0.1);
  stealing.Report(0, 1, {{7, 0, 0, {0, 6}}, {7, 1, 0, {6, 12}}}, work);
  EXPECT_EQ(stealing.Next(0, 0)->documents, (std::vector<WaitingDocuments>{{7, 1, 0, {7, 12}}}));
  EXPECT_DOUBLE_EQ(stealing.most_waiting_s(0), 10);
  EXPECT_TRUE(stealing.Next(9.8, 0));
  EXPECT_FALSE(stealing.Next(10, 0))
      << "two seconds of documents are not worth two seconds of prefix";
}

TEST(Stealing, TheVictimIsWhoHasMostBeyondThePrefix) {
  OpenWork work(4, 1, 1);
  TaskEstimate estimate;
  estimate.device_s = 1;
  work.Add(estimate, {});
  estimate.prefix_s = 20;
  work.Add(estimate, {});
  Stealing stealing(0.1);
  stealing.Report(0, 1, {{7, 0, 0, {0, 4}}}, work);
  stealing.Report(0, 2, {{8, 0, 1, {0, 23}}}, work);
  EXPECT_EQ(stealing.Next(0, 0)->device, 1);
  stealing.Report(0, 2, {{8, 0, 1, {0, 30}}}, work);
  EXPECT_EQ(stealing.Next(0, 0)->documents, (std::vector<WaitingDocuments>{{8, 0, 1, {25, 30}}}));
}

// Compared with a plain search through all devices.
TEST(Stealing, TheVictimIsAlwaysTheOneFurthestBehind) {
  std::mt19937_64 random(5);
  const OpenWork work = Work();
  Stealing stealing(0.25);
  std::map<int, double> begun_at;
  double now = 0;
  for (int step = 0; step < 20000; ++step) {
    now += static_cast<double>(random() % 1000) / 10000;
    const int device = static_cast<int>(random() % 12);
    if (random() % 8 == 0) {
      stealing.Forget(device);
      begun_at.erase(device);
      continue;
    }
    if (random() % 2 == 0) {
      std::vector<WaitingDocuments> waiting;
      begun_at.erase(device);
      for (int slice = 0; slice < static_cast<int>(random() % 4); ++slice) {
        const auto task = static_cast<size_t>(random() % 2);
        const auto count = static_cast<int64_t>(random() % 9);
        waiting.push_back({device, slice, task, {0, count}});
        if (count > 0) begun_at.try_emplace(device, now);
        if (count > 0)
          begun_at[device] += static_cast<double>(count) * work.estimate(task).device_s;
      }
      stealing.Report(now, device, waiting, work);
      continue;
    }
    double most = 0;
    for (const auto& [other, at] : begun_at) {
      if (other != device) most = std::max(most, at - now);
    }
    const auto theft = stealing.Next(now, device);
    ASSERT_EQ(theft.has_value(), most >= 0.25) << most;
    if (!theft) continue;
    ASSERT_NE(theft->device, device);
    ASSERT_DOUBLE_EQ(begun_at[theft->device] - now, most);
    ASSERT_FALSE(theft->documents.empty());
    for (const WaitingDocuments& taken : theft->documents) ASSERT_GT(taken.documents.size(), 0);
  }
}

}  // namespace
}  // namespace evald

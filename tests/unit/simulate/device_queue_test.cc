#include "orchestrator/simulate/device_queue.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

std::vector<PlacedDocument> Documents(int64_t trial, std::vector<double> seconds) {
  std::vector<PlacedDocument> documents;
  for (size_t i = 0; i < seconds.size(); ++i)
    documents.push_back({trial, 0, static_cast<int64_t>(i), seconds[i], 0, 0});
  return documents;
}

std::vector<std::pair<double, double>> Times(const DeviceQueue& queue) {
  std::vector<std::pair<double, double>> times;
  for (const PlacedDocument& document : queue.documents())
    times.emplace_back(document.begin, document.end);
  return times;
}

using Pairs = std::vector<std::pair<double, double>>;

TEST(DeviceQueue, EachTakesThePlaceThatIsFreeFirst) {
  DeviceQueue queue(2);
  auto documents = Documents(1, {3, 1, 5, 1});
  queue.Add(10, &documents);
  EXPECT_EQ(Times(queue), (Pairs{{10, 13}, {10, 11}, {11, 16}, {13, 14}}));
  EXPECT_EQ(documents[2].end, 16) << "the caller is told too";
  EXPECT_EQ(queue.AllBegunAt(10), 13);
  EXPECT_EQ(queue.end(), 16);
  EXPECT_EQ(queue.PlaceFreeAt(10), 14);
}

TEST(DeviceQueue, WhatIsDroppedLetsTheOthersMoveUp) {
  DeviceQueue queue(1);
  auto first = Documents(1, {4, 4}), second = Documents(2, {1, 1});
  queue.Add(0, &first);
  queue.Add(0, &second);
  queue.Drop(2, [](const PlacedDocument& document) { return document.trial == 1; });
  EXPECT_EQ(Times(queue), (Pairs{{0, 4}, {4, 5}, {5, 6}})) << "the one under way goes on";
  EXPECT_EQ(queue.end(), 6);
  EXPECT_EQ(queue.busy_s(100), 6);
}

TEST(DeviceQueue, BusyTimeLeavesOutGapsAndWhatWasStopped) {
  DeviceQueue queue(2);
  auto a = Documents(1, {2, 3}), b = Documents(2, {10});
  queue.Add(0, &a);
  EXPECT_EQ(queue.busy_s(1), 1);
  queue.Add(5, &b);
  EXPECT_EQ(queue.busy_s(7), 5) << "two at once count once; from 3 to 5 nothing was there";
  queue.Clear(9);
  EXPECT_EQ(queue.busy_s(100), 7);
  EXPECT_TRUE(queue.documents().empty());
  EXPECT_EQ(queue.PlaceFreeAt(9), 9);
}

TEST(DeviceQueue, BusyTimeOfOnePlaceIsTheWork) {
  DeviceQueue queue(1);
  double work = 0;
  for (int trial = 0; trial < 50; ++trial) {
    auto documents = Documents(trial, {0.25 * (trial % 7), 0.5});
    work += 0.25 * (trial % 7) + 0.5;
    queue.Add(trial * 3, &documents);
    queue.Forget(trial * 3);
  }
  EXPECT_DOUBLE_EQ(queue.busy_s(1e9), work);
}

}  // namespace
}  // namespace evald

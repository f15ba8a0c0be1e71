#include "orchestrator/fleet/fetch_rate.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

constexpr int64_t kMicros = 1'000'000;

TEST(FetchRate, IsKnownAfterASpanWithinTheChunksUnderWay) {
  FetchRate rate;
  rate.Begin(5 * kMicros, 100);
  for (int64_t s = 2; s <= 8; s += 2) rate.Report((5 + s) * kMicros, 100 + 3 * s);
  EXPECT_FALSE(rate.AtMost(2));
  rate.Report(15 * kMicros, 130);
  EXPECT_DOUBLE_EQ(*rate.AtMost(2), 3.2);
  EXPECT_DOUBLE_EQ(*rate.AtLeast(4), 2.6);
}

TEST(FetchRate, ASourceThatStopsIsSeenToStop) {
  FetchRate rate;
  rate.Begin(0, 0);
  int64_t s = 0;
  for (; s < 1000; s += 2) rate.Report(s * kMicros, 100 * s);
  EXPECT_NEAR(*rate.AtMost(2), 100, 1);
  const int64_t have = 100 * (s - 2);
  for (; s < 1060; s += 2) rate.Report(s * kMicros, have);
  EXPECT_LT(*rate.AtMost(2), 30) << "a minute of nothing, after a quarter of an hour of much";
  for (; s < 1100; s += 2) rate.Report(s * kMicros, have + s / 20);
  EXPECT_LT(*rate.AtMost(2), 1) << "a drop now and then";
}

TEST(FetchRate, APauseDoesNotCount) {
  FetchRate rate;
  rate.Begin(0, 0);
  rate.Pause(60 * kMicros);
  rate.Report(65 * kMicros, 5);
  EXPECT_FALSE(rate.AtMost(2));
  rate.Report(70 * kMicros, 10);
  EXPECT_DOUBLE_EQ(*rate.AtLeast(0), 1);
  EXPECT_EQ(rate.began_us(), 0);
}

TEST(ServiceRates, TheBestOfTheLastFewCounts) {
  ServiceRates rates;
  EXPECT_EQ(rates.best(), 0);
  rates.Ended(ServiceRates::kChunksMin - 1, 1);
  EXPECT_EQ(rates.best(), 0) << "too few to say anything";
  rates.Ended(100, kMicros);
  rates.Ended(10, kMicros);
  EXPECT_EQ(rates.best(), 100);
  for (size_t i = 0; i < ServiceRates::kKept; ++i) rates.Ended(20, kMicros);
  EXPECT_EQ(rates.best(), 20);
}

}  // namespace
}  // namespace evald

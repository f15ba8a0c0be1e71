#include "worker/server/waiting.h"

#include <gtest/gtest.h>

namespace evald::server {
namespace {

using std::chrono::steady_clock;

ScoreWindow Window(std::vector<int32_t> tokens) { return {std::move(tokens), {1}, 0}; }

std::vector<uint64_t> Tags(const std::vector<Item>& items) {
  std::vector<uint64_t> tags;
  for (const Item& item : items) tags.push_back(item.tag);
  return tags;
}

Item Of(uint64_t tag, const ScoreWindow* window = nullptr, size_t way = 0) {
  Item item;
  item.tag = tag;
  item.window = window;
  item.way = way;
  return item;
}

size_t Four(const Item&) { return 4; }

TEST(Waiting, WindowsComeInTheOrderOfTheirTokens) {
  const ScoreWindow a = Window({1, 2}), b = Window({1, 2, 3}), c = Window({7}), same = a;
  Waiting waiting;
  waiting.Add(Of(1, &c));
  waiting.Add(Of(2, &a));
  waiting.Add(Of(3, &b));
  waiting.Add(Of(4, &same));
  waiting.Add(Of(5, &a, 1));  // another way
  waiting.Add(Of(6));
  const auto now = steady_clock::now();
  EXPECT_EQ(Tags(waiting.Take(now, Four)), (std::vector<uint64_t>{6}));
  EXPECT_EQ(Tags(waiting.Take(now, Four)), (std::vector<uint64_t>{2, 4}));
  EXPECT_EQ(Tags(waiting.Take(now, Four)), (std::vector<uint64_t>{5}));
  EXPECT_EQ(Tags(waiting.Take(now, Four)), (std::vector<uint64_t>{3}));
  waiting.Add(Of(7, &a));  // lies behind: those that follow come first
  EXPECT_EQ(Tags(waiting.Take(now, Four)), (std::vector<uint64_t>{1}));
  EXPECT_EQ(Tags(waiting.Take(now, Four)), (std::vector<uint64_t>{7}));
  EXPECT_TRUE(waiting.Take(now, Four).empty());
}

TEST(Waiting, OneCallTakesNoMoreThanItMay) {
  const ScoreWindow a = Window({1});
  Waiting waiting;
  for (uint64_t tag = 0; tag < 6; ++tag) waiting.Add(Of(tag, &a));
  EXPECT_EQ(waiting.Take(steady_clock::now(), Four).size(), 4u);
  EXPECT_EQ(waiting.Take(steady_clock::now(), Four).size(), 2u);
}

TEST(Waiting, APauseIsKept) {
  const auto now = steady_clock::now();
  Waiting waiting;
  Item item = Of(1);
  item.not_before = now + std::chrono::seconds(5);
  waiting.Add(item);
  EXPECT_TRUE(waiting.Take(now, Four).empty());
  EXPECT_EQ(waiting.NextDue(), item.not_before);
  EXPECT_EQ(waiting.Take(item.not_before, Four).size(), 1u);
  EXPECT_FALSE(waiting.NextDue());
}

}  // namespace
}  // namespace evald::server

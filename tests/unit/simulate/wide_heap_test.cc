#include "orchestrator/simulate/wide_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace evald {
namespace {

std::vector<int> Drained(WideHeap<int> heap) {
  std::vector<int> values;
  while (!heap.empty()) values.push_back(heap.Pop());
  return values;
}

TEST(WideHeap, GivesItsValuesInOrder) {
  std::mt19937_64 random(1);
  for (size_t count = 0; count < 100; ++count) {
    std::vector<int> values;
    WideHeap<int> pushed;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(static_cast<int>(random() % 50));
      pushed.Push(values.back());
    }
    const WideHeap<int> made(values);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(Drained(pushed), values);
    EXPECT_EQ(Drained(made), values);
  }
}

TEST(WideHeap, ReplaceTopIsPopAndPush) {
  std::mt19937_64 random(2);
  WideHeap<int> once(std::vector<int>(9, 3)), twice(std::vector<int>(9, 3));
  for (int step = 0; step < 200; ++step) {
    const int value = static_cast<int>(random() % 100);
    once.ReplaceTop(value);
    twice.Pop();
    twice.Push(value);
    ASSERT_EQ(once.top(), twice.top());
  }
  EXPECT_EQ(Drained(once), Drained(twice));
}

}  // namespace
}  // namespace evald

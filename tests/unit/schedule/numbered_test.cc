#include "orchestrator/schedule/numbered.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace evald {
namespace {

TEST(Numbered, AValueIsFoundUntilItIsErased) {
  Numbered<std::string> values;
  EXPECT_FALSE(values.has(7));
  EXPECT_TRUE(values.Add(7, "seven"));
  EXPECT_FALSE(values.Add(7, "another"));
  EXPECT_TRUE(values.Add(9, "nine"));
  EXPECT_TRUE(values.Add(5, "five")) << "below the first";
  EXPECT_EQ(values.at(7), "seven");
  EXPECT_FALSE(values.has(8));
  EXPECT_FALSE(values.has(-1));
  EXPECT_FALSE(values.has(INT64_MAX));
  values.Erase(5);
  values.Erase(8);
  EXPECT_FALSE(values.has(5));
  EXPECT_EQ(*values.Find(9), "nine");
}

TEST(Numbered, AReferenceOutlivesWhatIsAddedAndErasedBesideIt) {
  Numbered<int> values;
  for (int i = 0; i < 100; ++i) values.Add(i, i);
  int& kept = values.at(50);
  for (int i = 100; i < 5000; ++i) values.Add(i, i);
  for (int i = 0; i < 50; ++i) values.Erase(i);
  kept = -1;
  EXPECT_EQ(values.at(50), -1);
}

TEST(Numbered, TheSameAsAMap) {
  std::mt19937 random(1);
  Numbered<int> values;
  std::map<int64_t, int> map;
  for (int step = 0; step < 20000; ++step) {
    const auto number = static_cast<int64_t>(random() % 200);
    if (random() % 2 == 0) {
      ASSERT_EQ(values.Add(number, step), map.emplace(number, step).second);
    } else {
      values.Erase(number);
      map.erase(number);
    }
  }
  std::map<int64_t, int> seen;
  values.ForEach([&](int64_t number, int value) { seen[number] = value; });
  EXPECT_EQ(seen, map);
}

}  // namespace
}  // namespace evald

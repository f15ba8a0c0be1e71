#include "bench/gpu/prefix_work.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace evald::bench {
namespace {

TEST(PrefixWorkTest, CountsASharedPrefixOnce) {
  const PrefixWork work = PrefixWorkOf({{1, 2, 3, 4}, {1, 2, 5}, {1, 2, 3, 4}, {7}});
  EXPECT_EQ(work.tokens_asked, 12);
  EXPECT_EQ(work.tokens_distinct, 6);
  EXPECT_DOUBLE_EQ(work.pairs, (1 + 2 + 3 + 4) + 3 + 1);
}

TEST(PrefixWorkTest, NothingIsNothing) {
  EXPECT_EQ(PrefixWorkOf({}).tokens_asked, 0);
  EXPECT_EQ(PrefixWorkOf({{}, {}}).tokens_distinct, 0);
}

TEST(PrefixWorkTest, IsTheNumberOfDifferentPrefixes) {
  std::mt19937_64 generator(5);
  std::vector<std::vector<int32_t>> sequences(300);
  std::set<std::vector<int32_t>> prefixes;
  for (auto& sequence : sequences) {
    for (uint64_t length = generator() % 9; sequence.size() < length;) {
      sequence.push_back(static_cast<int32_t>(generator() % 3));
      prefixes.insert(sequence);
    }
  }
  double pairs = 0;
  for (const auto& prefix : prefixes) pairs += static_cast<double>(prefix.size());
  const PrefixWork work = PrefixWorkOf(sequences);
  EXPECT_EQ(work.tokens_distinct, static_cast<int64_t>(prefixes.size()));
  EXPECT_DOUBLE_EQ(work.pairs, pairs);
}

}  // namespace
}  // namespace evald::bench

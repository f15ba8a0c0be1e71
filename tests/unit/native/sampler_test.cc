#include "worker/native/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace evald::native {
namespace {

// Known answers of the Random123 library, philox4x32 with 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(Philox({f, f, f, f}, {f, f}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformTest, EveryPartOfTheKeyCounts) {
  std::set<double> seen;
  Request request;
  const auto draw = [&](uint64_t seed, int token) {
    const double u = UniformFor(seed, request, token);
    EXPECT_GE(u, 0);
    EXPECT_LT(u, 1);
    EXPECT_TRUE(seen.insert(u).second);
  };
  draw(1, 0);
  draw(2, 0);
  draw(1, 1);
  request.doc_id = 1;
  draw(1, 0);
  request.idx = 1;
  draw(1, 0);
  request.repeat = 1;
  draw(1, 0);
}

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};

std::vector<int> Counts(const GenerationSettings& sampling) {
  std::vector<int> counts(kLogits.size());
  for (int i = 0; i < 10000; ++i) {
    ++counts[static_cast<size_t>(Sample(kLogits.data(), 5, sampling, i / 10000.0))];
  }
  return counts;
}

TEST(SampleTest, FollowsTheProbabilities) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    GenerationSettings sampling;
    sampling.temperature = temperature;
    double total = 0;
    for (const float logit : kLogits) total += std::exp(logit / temperature);
    const std::vector<int> counts = Counts(sampling);
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_NEAR(counts[i], 10000 * std::exp(kLogits[i] / temperature) / total, 2);
    }
  }
}

TEST(SampleTest, TopKKeepsEqualOnes) {
  GenerationSettings sampling;
  sampling.top_k = 1;
  const std::vector<int> counts = Counts(sampling);
  EXPECT_EQ(counts[0] + counts[2] + counts[4], 0);
  EXPECT_NEAR(counts[1], 5000, 1);
}

TEST(SampleTest, TopP) {
  // Probabilities 0.054, 0.399, 0.147, 0.399, 0.007: the two largest make 0.80.
  GenerationSettings sampling;
  sampling.top_p = 0.79;
  EXPECT_EQ(Counts(sampling)[2], 0);
  sampling.top_p = 0.81;
  EXPECT_GT(Counts(sampling)[2], 0);
  EXPECT_EQ(Counts(sampling)[0], 0);
  sampling.top_p = 1e-9;
  const std::vector<int> counts = Counts(sampling);
  EXPECT_EQ(counts[1] + counts[3], 10000);
}

TEST(GreedyTest, TakesTheFirstOfEquals) { EXPECT_EQ(Greedy(kLogits.data(), 5, 3.0f), 1); }

}  // namespace
}  // namespace evald::native

// The comparison of scores, on made-up numbers.
#include "worker/parity/judge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace evald::parity {
namespace {

using Found = std::vector<std::vector<std::optional<double>>>;

// Two short parts and a long one, of ten windows with one target each. fp32 and the engine's type
// are 0.01 apart.
Reference Made() {
  Reference reference;
  for (const char* name : {"a text of 8 tokens", "a text of 20 tokens", "300 tokens"}) {
    Part part;
    part.name = name;
    part.is_long = reference.parts.size() == 2;
    std::vector<Expected> expected;
    for (int i = 0; i < 10; ++i) {
      part.windows.push_back({{1, 2}, {3 + i}, 1});
      expected.push_back({-2.0 - i, -2.0 - i + (i % 2 == 0 ? 0.01 : -0.01)});
    }
    reference.parts.push_back(part);
    reference.expected.push_back(expected);
  }
  return reference;
}

// The reference's exact scores, each `off` further off.
Found Off(const Reference& reference, double off, size_t from_part = 0) {
  Found found;
  for (const auto& part : reference.expected) {
    std::vector<std::optional<double>> scores;
    for (const Expected& expected : part)
      scores.emplace_back(expected.exact + (found.size() >= from_part ? off : 0));
    found.push_back(scores);
  }
  return found;
}

TEST(Judge, TheTypesOwnRoundingAgrees) {
  const Reference reference = Made();
  const Verdict verdict = Judge(reference, Off(reference, 0.02));
  EXPECT_EQ(verdict.difference, "");
  EXPECT_EQ(verdict.all.scores, 30);
  EXPECT_NEAR(verdict.all.mean, 0.02, 1e-12);
  EXPECT_NEAR(verdict.all.expected, 0.01, 1e-12);
}

TEST(Judge, MoreDiffers) {
  const Reference reference = Made();
  const Verdict verdict = Judge(reference, Off(reference, 0.05));
  EXPECT_NE(verdict.difference.find("0.0500 nats off on average, where rounding explains 0.0100"),
            std::string::npos)
      << verdict.difference;
  EXPECT_NE(verdict.causes.find("coarser type"), std::string::npos) << verdict.causes;
  EXPECT_NE(Judge(reference, Off(reference, 1)).causes.find("weights"), std::string::npos);
}

TEST(Judge, AFaultOfLongTextsShows) {
  const Reference reference = Made();
  const Verdict verdict = Judge(reference, Off(reference, 0.05, 2));
  EXPECT_EQ(verdict.difference.find("on 300 tokens its"), 0u) << verdict.difference;
  EXPECT_NE(verdict.causes.find("short texts agree"), std::string::npos);
}

TEST(Judge, OneScoreThatIsFarOffShows) {
  const Reference reference = Made();
  Found found = Off(reference, 0);
  found[1][4] = -9.0;
  const Verdict verdict = Judge(reference, found);
  EXPECT_NE(verdict.difference.find("-9.0000 where evald's own engine has -6.0000"),
            std::string::npos)
      << verdict.difference;
  found[1][4] = NAN;
  EXPECT_NE(Judge(reference, found).difference, "");
  found[1][4] = -INFINITY;
  EXPECT_NE(Judge(reference, found).difference, "");
}

TEST(Judge, ExactTypesHaveAFloor) {
  Reference reference = Made();
  for (auto& part : reference.expected) {
    for (Expected& expected : part) expected.rounded = expected.exact;
  }
  EXPECT_EQ(Judge(reference, Off(reference, 0.0015)).difference, "");
  EXPECT_NE(Judge(reference, Off(reference, 0.01)).difference, "");
}

TEST(Judge, PassesOverMissingScoresAndThoseOfAModelWithoutNumbers) {
  Reference reference = Made();
  Found found = Off(reference, 0);
  found[0][0].reset();
  reference.expected[1][0].exact = NAN;
  found[1][0] = 5;
  const Verdict verdict = Judge(reference, found);
  EXPECT_EQ(verdict.difference, "");
  EXPECT_EQ(verdict.all.scores, 28);
  EXPECT_EQ(Judge(reference, {}).all.scores, 0);
}

}  // namespace
}  // namespace evald::parity

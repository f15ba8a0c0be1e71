// The texts and windows of the parity check.
#include "worker/parity/parts.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/native/native_test_util.h"
#include "tokenizer/tokenizer.h"

namespace evald::parity {
namespace {

std::unique_ptr<Tokenizer> AnyTokenizer() { return Tokenizer::Load(native::GoldenPath("llama3")); }

TEST(Parts, EndBeforeTheContextDoes) {
  const auto tokenizer = AnyTokenizer();
  for (const int max_length : {8, 64, 302, 303, 400}) {
    for (const Part& part : MakeParts(*tokenizer, max_length, {{350, "the window"}})) {
      for (const ScoreWindow& window : part.windows) {
        EXPECT_LE(window.tokens.size() + 1, static_cast<size_t>(max_length - 2)) << part.name;
        EXPECT_EQ(window.score_from + window.targets.size(), window.tokens.size()) << part.name;
      }
    }
  }
}

TEST(Parts, GoBeyondEachEdge) {
  const std::vector<Part> parts =
      MakeParts(*AnyTokenizer(), 1000, {{48, "the sliding window"}, {990, "another"}});
  std::vector<std::string> long_ones;
  for (const Part& part : parts) {
    if (part.is_long) long_ones.push_back(part.name);
  }
  EXPECT_EQ(long_ones,
            (std::vector<std::string>{"72 tokens, beyond the sliding window", "300 tokens"}));
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end(),
                             [](const Part& a, const Part& b) { return a.rows < b.rows; }));
}

TEST(Parts, ScoreDifferentTokensAsTheNextOne) {
  for (const Part& part : MakeParts(*AnyTokenizer(), 1000, {})) {
    std::set<int32_t> next;
    for (const ScoreWindow& window : part.windows) {
      EXPECT_EQ(window.tokens, part.windows[0].tokens);
      if (window.targets.size() == 1) next.insert(window.targets[0]);
    }
    EXPECT_EQ(next.size(), part.windows.size() - 1) << part.name;
    EXPECT_EQ(part.windows.back().targets.size(), 6u);
  }
}

TEST(Parts, AContextThatIsTooShortGivesNone) {
  EXPECT_TRUE(MakeParts(*AnyTokenizer(), 5, {}).empty());
  EXPECT_TRUE(MakeParts(*AnyTokenizer(), 0, {}).empty());
}

}  // namespace
}  // namespace evald::parity

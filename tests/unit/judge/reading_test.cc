// What a judge's answer counts.
#include "metrics/judge/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "specs.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using test::Pair;
using test::Rubric;
using ::testing::HasSubstr;

Completion Text(const std::string& text, bool cut = false) {
  Completion completion;
  completion.text = text;
  completion.cut = cut;
  return completion;
}

std::optional<double> ScoreOf(const JudgeSpec& spec, const std::string& text,
                              bool swapped = false) {
  return ReadVerdict(spec, Text(text), swapped).score;
}

std::string WhyNone(const JudgeSpec& spec, const std::string& text, bool cut = false) {
  const JudgeReading reading = ReadVerdict(spec, Text(text, cut), false);
  EXPECT_FALSE(reading.score) << text;
  return reading.why;
}

TEST(Reading, APatternFindsTheLastNumber) {
  const JudgeSpec spec = Rubric();
  EXPECT_EQ(ScoreOf(spec, "At first Score: 3.\nOn the whole Score: 7"), 7);
  EXPECT_EQ(ScoreOf(Rubric({{"match", "first"}}), "Score: 3 then Score: 7"), 3);
  EXPECT_EQ(ScoreOf(spec, "Score: 7.5 of 10"), 7.5);
  EXPECT_EQ(ScoreOf(Rubric({{"pattern", "^[0-9]+$"}, {"group", 0}}), "Well.\n4\n"), 4);
  EXPECT_THAT(WhyNone(spec, "I would say seven."), HasSubstr("matches nothing in 'I would"));
  EXPECT_THAT(WhyNone(spec, "<html><body>502</body></html>"), HasSubstr("matches nothing"));
  EXPECT_THAT(WhyNone(spec, " \n"), HasSubstr("the answer is empty"));
  EXPECT_THAT(WhyNone(spec, "Score: 11"), HasSubstr("the verdict is 11, expected a number from 1"));
  EXPECT_THAT(WhyNone(spec, "Score: 0"), HasSubstr("expected a number from 1 to 10"));
  EXPECT_THAT(WhyNone(spec, "Score: 1.2.3"), HasSubstr("expected a number"));
}

// Of "10" only "1" may have fitted into max_tokens.
TEST(Reading, ANumberAtTheEndOfACutAnswerDoesNotCount) {
  EXPECT_THAT(WhyNone(Rubric(), "Score: 1", true), HasSubstr("cut off amid the verdict"));
  EXPECT_EQ(ReadVerdict(Rubric(), Text("Score: 1. Since it", true), false).score, 1);
  const JudgeSpec letters =
      Rubric({{"range", nullptr}, {"pattern", "([AB])"}, {"choices", {{"A", 1}, {"B", 0}}}});
  EXPECT_EQ(ReadVerdict(letters, Text("A", true), false).score, 1) << "of max_tokens: 1";
}

TEST(Reading, ChoicesHaveScores) {
  const JudgeSpec spec = Rubric({{"range", nullptr},
                                 {"pattern", "Verdict: *(.+)"},
                                 {"choices", {{"Correct", 1}, {"partly right", 0.5}, {"no", 0}}}});
  EXPECT_EQ(ScoreOf(spec, "Verdict: Correct"), 1);
  EXPECT_EQ(ScoreOf(spec, "Verdict: PARTLY RIGHT "), 0.5);
  EXPECT_THAT(WhyNone(spec, "Verdict: perhaps"), HasSubstr("'perhaps', which is no choice"));
}

TEST(Reading, JsonIsFoundAmidProse) {
  const JudgeSpec spec = Rubric({{"pattern", nullptr}, {"json", "$.verdict.score"}});
  EXPECT_EQ(ScoreOf(spec, R"({"verdict": {"score": 8}})"), 8);
  EXPECT_EQ(ScoreOf(spec, "Here:\n```json\n{\"verdict\": {\"score\": \"8\"}}\n```\nDone."), 8);
  EXPECT_THAT(WhyNone(spec, R"({"verdict": 8})"), HasSubstr("no verdict at $.verdict.score"));
  EXPECT_THAT(WhyNone(spec, R"({"verdict": {"score": [8]}})"), HasSubstr("expected a text or"));
  EXPECT_THAT(WhyNone(spec, "eight"), HasSubstr("no verdict at"));
  EXPECT_THAT(WhyNone(spec, R"({"verdict": {"score": 8)"), HasSubstr("no verdict at"));
}

TEST(Reading, ASwappedPairIsTurnedRound) {
  const JudgeSpec spec = Pair();
  EXPECT_EQ(ScoreOf(spec, "Better: A"), 1);
  EXPECT_EQ(ScoreOf(spec, "Better: A", true), 0) << "the response was shown as B";
  EXPECT_EQ(ScoreOf(spec, "Better: B", true), 1);
  EXPECT_EQ(ScoreOf(spec, "Better: C", true), 0.5);
}

TEST(Reading, OrdersThatDifferAreAveragedOrATie) {
  EXPECT_EQ(CombineOrders(Pair(), 1, 0), 0.5);
  EXPECT_EQ(CombineOrders(Pair(), 1, 0.5), 0.75);
  EXPECT_EQ(CombineOrders(Pair({{"disagreement", "tie"}}), 1, 0.5), 0.5);
  EXPECT_EQ(CombineOrders(Pair({{"disagreement", "tie"}}), 1, 1), 1);
}

TEST(Reading, VotesAreAMeanOrTheMostFrequent) {
  EXPECT_EQ(CombineVotes(Rubric(), {2, 4, 9}), 5);
  const JudgeSpec majority = Rubric({{"combine", "majority"}});
  EXPECT_EQ(CombineVotes(majority, {2, 9, 9}), 9);
  EXPECT_EQ(CombineVotes(majority, {3, 2, 2, 3}), 3) << "of equally frequent ones the first";
}

TEST(CompletionText, IsReadFromTheFormsThatServersUse) {
  const Completion plain =
      ReadCompletion(R"({"choices":[{"message":{"content":"x"},"finish_reason":"length"}],)"
                     R"("usage":{"prompt_tokens":7,"completion_tokens":2}})");
  EXPECT_EQ(plain.text, "x");
  EXPECT_TRUE(plain.cut);
  EXPECT_EQ(plain.tokens_in, 7);
  EXPECT_EQ(plain.tokens_out, 2);
  EXPECT_EQ(ReadCompletion(R"({"choices":[{"message":{"content":null}}]})").text, "");
  EXPECT_EQ(ReadCompletion(R"({"choices":[{"message":{"content":[{"type":"text","text":"a"},)"
                           R"({"text":"b"}]}}],"usage":{"prompt_tokens":-1}})")
                .text,
            "ab");
  for (const char* body : {"", "<html>", "[]", "{}", R"({"choices":[]})", R"({"choices":[1]})",
                           R"({"choices":[{"message":"x"}]})", "\xff\xfe"}) {
    EXPECT_EQ(Caught([&] { ReadCompletion(body); }).kind(), ErrorKind::kInfrastructure) << body;
  }
}

}  // namespace
}  // namespace evald

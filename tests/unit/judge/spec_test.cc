// The arguments of a judge in a task's file, and what is wrong with them.
#include "metrics/judge/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "specs.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using test::Pair;
using test::Rubric;
using ::testing::HasSubstr;

TEST(JudgeSpec, HasItsDefaults) {
  const JudgeSpec spec = Rubric();
  EXPECT_EQ(spec.name, "judge");
  ASSERT_EQ(spec.messages.size(), 1u);
  EXPECT_EQ(spec.messages[0].role, "user");
  EXPECT_EQ(spec.group, 1);
  EXPECT_EQ(spec.votes, 1);
  EXPECT_EQ(spec.reasks, 2);
  EXPECT_FALSE(spec.first_match);
  EXPECT_FALSE(spec.majority);
  EXPECT_FALSE(spec.unparsed);
  EXPECT_EQ(spec.range->first, 1);
  EXPECT_EQ(spec.range->second, 10);
  EXPECT_FALSE(spec.pair());
}

TEST(JudgeSpec, APairHasThreeChoices) {
  const JudgeSpec spec = Pair();
  EXPECT_TRUE(spec.pair());
  EXPECT_FALSE(spec.differ_is_tie);
  const std::vector<std::pair<std::string, double>> expected = {{"A", 1}, {"B", 0}, {"C", 0.5}};
  EXPECT_EQ(spec.choices, expected);
  const JudgeSpec own =
      Pair({{"choices", {{"first", "a"}, {"second", "b"}}}, {"disagreement", "tie"}});
  EXPECT_TRUE(own.differ_is_tie);
  EXPECT_EQ(own.choices[1].first, "second");
  EXPECT_EQ(own.choices[1].second, 0);
}

TEST(JudgeSpec, AKeyOfJsonIsAPath) {
  EXPECT_EQ(Rubric({{"pattern", nullptr}, {"json", "score"}}).path->text(), "$.score");
  EXPECT_EQ(Rubric({{"pattern", nullptr}, {"json", "$.a[0]"}}).path->text(), "$.a[0]");
}

TEST(JudgeSpec, WhatIsWrongIsNamed) {
  const std::vector<std::pair<Json, const char*>> wrong = {
      {{{"promt", "x"}}, "the metric 'judge': has no key 'promt'; did you mean 'prompt'?"},
      {{{"prompt", nullptr}}, "has no 'prompt'"},
      {{{"messages", Json::array()}}, "has both 'prompt' and 'messages'"},
      {{{"prompt", nullptr}, {"messages", {{{"role", "judge"}, {"content", "x"}}}}},
       "a message's role is \"judge\", expected system, user or assistant"},
      {{{"prompt", nullptr}, {"messages", {{{"role", "user"}}}}}, "a role and a content"},
      {{{"prompt", "{{ question"}}, "the metric 'judge': prompt: line 1"},
      {{{"pattern", nullptr}}, "says not where the verdict stands"},
      {{{"json", "score"}}, "has both 'pattern' and 'json'"},
      {{{"pattern", "Score: [0-9]+"}},
       "the pattern 'Score: [0-9]+' has 0 groups, and group 1 is the verdict"},
      {{{"group", 2}}, "has 1 groups, and group 2 is the verdict"},
      {{{"pattern", "(("}}, "the metric 'judge'"},
      {{{"pattern", nullptr}, {"json", "score"}, {"group", 1}}, "'group' goes together"},
      {{{"pattern", nullptr}, {"json", "$.a["}}, "$.a["},
      {{{"range", nullptr}}, "says not which verdicts there are"},
      {{{"choices", {{"A", 1}}}}, "has both 'choices' and 'range'"},
      {{{"range", {10, 1}}}, "range is [10,1], expected the lowest score"},
      {{{"range", {1}}}, "range is [1], expected two numbers"},
      {{{"range", {1, "10"}}}, "range is [1,\"10\"], expected numbers"},
      {{{"range", nullptr}, {"choices", {{"A", "high"}}}}, "choices is"},
      {{{"range", nullptr}, {"choices", Json::object()}}, "a mapping of 1 to 100 choices"},
      {{{"reference", "other"}}, "'range' rates one response, and 'reference' compares two"},
      {{{"disagreement", "tie"}}, "'disagreement' goes together with 'reference'"},
      {{{"votes", 0}}, "votes is 0, expected an integer from 1 to 100"},
      {{{"combine", "median"}}, "combine is \"median\", expected mean or majority"},
      {{{"reasks", 50}}, "reasks is 50, expected an integer from 0 to 20"},
      {{{"unparsed", "0"}}, "unparsed is \"0\", expected numbers"},
      {{{"temperature", -1}}, "temperature is -1, expected a number from 0 to 10"},
      {{{"max_tokens", 0}}, "max_tokens is 0"},
      {{{"response_format", "json"}}, "response_format is \"json\", expected a mapping"}};
  for (const auto& [changes, message] : wrong) {
    EXPECT_THAT(RefusalOf([&] { Rubric(changes); }), HasSubstr(message)) << changes;
  }
  EXPECT_THAT(RefusalOf([] { Pair({{"choices", {{"A", 1}}}}); }), HasSubstr("a, b or tie"));
  EXPECT_THAT(RefusalOf([] { Pair({{"disagreement", "win"}}); }), HasSubstr("average or tie"));
}

}  // namespace
}  // namespace evald

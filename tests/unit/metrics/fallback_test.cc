// Answers over which a filter or metric would give up. A model must not be able to stop a run with
// one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/scorer.h"
#include "python/regex.h"
#include "tests/unit/metrics/fixtures.h"

namespace evald {
namespace {

// The search tries every start within the letters, and from each start every division of the rest
// into groups.
const std::string kEndless(60, 'a');
constexpr const char* kNested = "^(a+)+$";

FilterScore ScoreOf(const TaskDefinition& task, const std::string& answer,
                    const std::string& target = "x", Json doc = Json::object()) {
  PreparedDocument document;
  document.doc = std::move(doc);
  document.target = target;
  return Scorer(task, nullptr).Score(document, {test::Answer(0, answer)}).filters[0];
}

TaskDefinition TaskWith(std::vector<FilterStep> steps, Json metric_kwargs = Json::object()) {
  TaskDefinition task = test::AnswerTask();
  task.metrics[0].kwargs = std::move(metric_kwargs);
  task.filters = {{"one", std::move(steps)}};
  return task;
}

const FilterStep kFirst = {"take_first", Json::object()};

void ExpectFallback(const FilterScore& score, const Json& filtered, const std::string& why) {
  EXPECT_EQ(score.filtered, Json::array({filtered}));
  EXPECT_EQ(score.fallbacks, (Fallbacks{{why, 1}}));
  EXPECT_EQ(score.metrics, (Json{{"exact_match", 0.0}}));
}

TEST(Fallback, ASearchWithoutEndGivesTheFiltersFallback) {
  const Json kwargs = {{"regex_pattern", kNested}, {"fallback", "none"}};
  ExpectFallback(ScoreOf(TaskWith({{"regex", kwargs}, kFirst}), kEndless + "!"), "none",
                 "step limit");
  const FilterScore fine = ScoreOf(TaskWith({{"regex", kwargs}, kFirst}), "aaa", "aaa");
  EXPECT_EQ(fine.metrics, (Json{{"exact_match", 1.0}}));
  EXPECT_TRUE(fine.fallbacks.empty());
}

// The searches of a document have a bound together, beyond which all but the easiest are given up
// at once. So many filters do not hold a metric process for as many times as long as one.
TEST(Fallback, TheSearchesOfADocumentAreBoundedTogether) {
  const auto filter = [](const char* pattern) {
    return std::vector<FilterStep>{{"regex", {{"regex_pattern", pattern}, {"fallback", "none"}}},
                                   kFirst};
  };
  constexpr const char* kSlow = "a+a+[bc]";  // some ten thousand steps
  TaskDefinition task = TaskWith({}, {{"regexes_to_ignore", {","}}});
  task.filters.clear();
  for (const char* name : {"a", "b", "c", "d", "e", "f"})
    task.filters.push_back({name, filter(kNested)});
  task.filters.push_back({"slow", filter(kSlow)});
  task.filters.push_back({"easy", filter("^b")});
  PreparedDocument document;
  document.target = "x";
  const Scorer scorer(task, nullptr);
  const ScoredDocument score = scorer.Score(document, {test::Answer(0, kEndless + "!")});
  for (const FilterScore& of : score.filters) {
    const Fallbacks expected = {{"step limit", 1}};
    EXPECT_EQ(of.fallbacks, of.filter == "easy" ? Fallbacks{} : expected) << of.filter;
  }
  // The next document has a bound of its own.
  EXPECT_TRUE(scorer.Score(document, {test::Answer(0, "!")}).filters[6].fallbacks.empty());
  EXPECT_TRUE(ScoreOf(TaskWith(filter(kSlow)), kEndless + "!").fallbacks.empty());
}

TEST(Fallback, SoDoesMultipleChoice) {
  const Json doc = {{"choices", {"yes", "no"}}};
  const Json kwargs = {{"regex_pattern", kNested}};
  ExpectFallback(
      ScoreOf(TaskWith({{"multi_choice_regex", kwargs}, kFirst}), kEndless + "! yes", "x", doc),
      "[invalid]", "step limit");
  const Json ignoring = {{"regex_pattern", "never"}, {"regexes_to_ignore", {kNested}}};
  ExpectFallback(
      ScoreOf(TaskWith({{"multi_choice_regex", ignoring}, kFirst}), kEndless + "! yes", "x", doc),
      "[invalid]", "step limit");
}

TEST(Fallback, AMetricThatCannotTakeTheAnswerScoresAsInvalid) {
  ExpectFallback(ScoreOf(TaskWith({kFirst}, {{"regexes_to_ignore", {kNested}}}), kEndless + "!"),
                 "[invalid]", "step limit");
  EXPECT_THROW(ScoreOf(TaskWith({kFirst}, {{"regexes_to_ignore", {kNested}}}), "x", kEndless + "!"),
               Error)
      << "a target is the task's own";
}

TEST(Fallback, FewerMatchesThanTheIndexAsksFor) {
  const Json kwargs = {{"regex_pattern", "\\d"}, {"group_select", 2}};
  ExpectFallback(ScoreOf(TaskWith({{"regex", kwargs}, kFirst}), "1 and 2"), "[invalid]",
                 "too few matches");
  EXPECT_EQ(ScoreOf(TaskWith({{"regex", kwargs}, kFirst}), "1, 2, 3", "3").metrics["exact_match"],
            1.0);
}

TEST(Fallback, WhatAMapDoesNotKnowIsNoText) {
  const Json kwargs = {{"mapping_dict", {{"yes", "1"}}}};
  ExpectFallback(ScoreOf(TaskWith({{"map", kwargs}, kFirst}), "maybe"), "[invalid]", "no text");
  ExpectFallback(
      ScoreOf(TaskWith({{"map", kwargs}, kFirst, {"lowercase", Json::object()}}), "maybe"),
      "[invalid]", "no text");
  EXPECT_EQ(ScoreOf(TaskWith({{"map", kwargs}, kFirst}), "yes", "1").metrics["exact_match"], 1.0);
}

TEST(Fallback, AnEmptyAnswerOfWhichTheCharactersAreTaken) {
  ExpectFallback(ScoreOf(TaskWith({kFirst, kFirst}), ""), "[invalid]", "no text");
  ExpectFallback(ScoreOf(TaskWith({kFirst, {"lowercase", Json::object()}}), ""), "[invalid]",
                 "no text");
}

TEST(Fallback, OddTextIsOnlyText) {
  const Json kwargs = {{"regex_pattern", "(\\d+)"}};
  for (const std::string& odd : {std::string("\0\0", 2), std::string("\xff\xfe\xed\xa0\x80"),
                                 std::string("\xf4\x90\x80\x80"), std::string(1 << 20, '['),
                                 std::string(1 << 20, '\n'), std::string("")}) {
    for (const char* filter :
         {"lowercase", "uppercase", "remove_whitespace", "regex_pos", "format_span"}) {
      EXPECT_TRUE(ScoreOf(TaskWith({{filter, Json::object()}, kFirst}), odd)
                      .metrics.contains("exact_match"))
          << filter;
    }
    EXPECT_EQ(ScoreOf(TaskWith({{"regex", kwargs}, kFirst}), odd).filtered,
              Json::array({"[invalid]"}));
  }
}

/// All searches of one answer are bounded together: each of these searches takes long, and there
/// are many.
TEST(Fallback, ManyLongSearchesAreBoundedTogether) {
  std::string answer;
  for (int i = 0; i < 10'000; ++i) answer += "b" + std::string(18, 'a') + "!";
  const Json kwargs = {{"regex_pattern", "b(a+)+c|b"}, {"group_select", -1}};
  EXPECT_EQ(ScoreOf(TaskWith({{"regex", kwargs}, kFirst}), answer).fallbacks,
            (Fallbacks{{"step limit", 1}}));
}

TEST(Fallback, CountedStepsFindWhatUncountedOnesFind) {
  const std::string text = "one 22 three 4444 " + std::string(5'000, 'x') + " 55";
  for (const char* pattern : {"\\d+", "x*", "", "(\\w+) (\\d+)", "x+ 5", "\\b"}) {
    const PythonRegex regex(pattern);
    std::vector<std::pair<size_t, size_t>> counted, uncounted;
    RegexSteps steps;
    regex.ForEachMatch(
        text,
        [&](const Regex::Match& m) { return counted.emplace_back(m[0].begin, m[0].end), true; },
        &steps);
    regex.ForEachMatch(text, [&](const Regex::Match& m) {
      return uncounted.emplace_back(m[0].begin, m[0].end), true;
    });
    EXPECT_EQ(counted, uncounted) << pattern;
  }
}

TEST(Fallback, TheScoresLineKeepsTheCount) {
  ScoredDocument score;
  score.filters = {{"one", "x", {{"exact_match", 0.0}}, {{"step limit", 2}}},
                   {"two", "y", Json::object(), {}}};
  const Json line = ToJson(score);
  EXPECT_EQ(line["filters"][0]["fallbacks"], (Json{{"step limit", 2}}));
  EXPECT_FALSE(line["filters"][1].contains("fallbacks"));
  EXPECT_EQ(ScoreFromJson(line, "here").filters[0].fallbacks, score.filters[0].fallbacks);
}

TEST(Fallback, AThirdLabelIsAWrongAnswerToF1) {
  TaskDefinition task = test::AnswerTask();
  task.output_type = "multiple_choice";
  task.metrics = {{"f1", "", "f1", true, Json::object()}};
  std::vector<ScoredDocument> scores(3);
  const Json pairs = {{1, 1}, {0, 2}, {1, 0}};
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i].filters = {{"strict", "", {{"f1", pairs[i]}}, {}}};
  EXPECT_DOUBLE_EQ(AggregateTask(task, scores, 0)["f1,strict"].get<double>(), 2.0 / 3.0);
  scores[1].filters[0].metrics["f1"] = {2, 0};
  scores[2].filters[0].metrics["f1"] = {0, 0};
  EXPECT_THROW(AggregateTask(task, scores, 0), Error) << "the labels are the task's own";
}

}  // namespace
}  // namespace evald

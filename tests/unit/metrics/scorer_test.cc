// Scorer: refusals, and the scores of odd generations.
#include "metrics/scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "metrics/process_results.h"
#include "metrics/scoring/code_eval.h"
#include "python/numpy.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

PreparedDocument Document(const std::string& target) {
  PreparedDocument document;
  document.doc = {{"prompt", "def f():\n"}};
  document.target = target;
  return document;
}

// A runner that passes programs with the text "good".
class FakeRunner : public CodeRunner {
 public:
  ProgramOutcome Run(const std::string& source) override {
    sources.push_back(source);
    if (source.find("broken") != std::string::npos) {
      throw Error(ErrorKind::kInfrastructure, "the sandbox is gone");
    }
    const bool good = source.find("good") != std::string::npos;
    return {good ? ProgramStatus::kPassed : ProgramStatus::kFailed, good ? "passed" : "failed",
            0.1};
  }
  std::unique_ptr<BuiltProgram> Build(const ProgramSources& program,
                                      ProgramOutcome* outcome) override {
    *outcome = Run(program.language + ": " + program.files.at(0).text);
    return nullptr;
  }
  Json Isolation() const override { return {{"isolation", "none"}}; }
  std::vector<std::string> sources;
};

std::string Refusal(const TaskDefinition& task) {
  return RefusalOf([&] { const Scorer scorer(task, nullptr); });
}

// A command's scores, which may have the names of metrics that evald knows.
TEST(Scorer, TakesTheScoresOfACommand) {
  TaskDefinition task = test::AnswerTask();
  task.filters = {{"none", {{"take_first", Json::object()}}}};
  task.metrics.clear();
  for (const char* name : {"acc", "bleu", "mine"})
    task.metrics.push_back({name, kCommandMetric, "mean", true, Json::object()});
  const Scorer scorer(task, nullptr);
  Generation answer;
  answer.text = R"({"acc": 0.30000000000000004, "bleu": -3, "mine": 1e300})";
  const ScoredDocument score = scorer.Score(Document(""), {answer});
  EXPECT_EQ(score.filters.at(0).metrics,
            Json({{"acc", 0.30000000000000004}, {"bleu", -3.0}, {"mine", 1e300}}));
  answer.text = R"({"acc": 1})";
  EXPECT_THAT(RefusalOf([&] { scorer.Score(Document(""), {answer}); }), HasSubstr("has no score"));
}

// The expected values are those of MultiChoiceRegexFilter of lm_eval 0.4.13.
TEST(Scorer, ChoicesThatAreAMappingOrATextAreIteratedAsInPython) {
  TaskDefinition task = test::AnswerTask();
  const Json kwargs = {{"regex_pattern", "(\\([A-Z]\\))"},
                       {"group_select", 0},
                       {"ignore_case", true},
                       {"ignore_punctuation", true}};
  task.filters = {{"choice", {{"multi_choice_regex", kwargs}, {"take_first", Json::object()}}}};
  const Scorer scorer(task, nullptr);
  const auto letter = [&](const Json& choices, const std::string& answer) {
    PreparedDocument document = Document("(A)");
    document.doc = {{"choices", choices}};
    return scorer.Score(document, {test::Answer(0, answer)}).filters.at(0).filtered.at(0);
  };
  const Json mapping = {{"text", {"x", "y"}}, {"label", {"A", "B"}}};
  EXPECT_EQ(letter(mapping, "the label is it"), "(B)");
  EXPECT_EQ(letter(mapping, "so: B"), "(B)");
  EXPECT_EQ(letter(mapping, "some text"), "(A)");
  EXPECT_EQ(letter(mapping, "x"), "[invalid]");
  EXPECT_EQ(letter("ab", "b or what"), "(B)");
  EXPECT_EQ(letter("ab", "answer: A"), "(A)");
  EXPECT_EQ(letter("ab", "(Z)"), "(Z)");
}

TEST(Scorer, RefusesATaskBeyondItsLimits) {
  TaskDefinition task = test::AnswerTask();
  task.filters.resize(20'000, task.filters[0]);
  EXPECT_THAT(Refusal(task),
              HasSubstr("pipelines of filter_list: found 20000, expected at most 64"));
  task = test::AnswerTask();
  task.filters[1].steps.resize(65, task.filters[1].steps[0]);
  EXPECT_THAT(Refusal(task), HasSubstr("steps of the filter pipeline 'flexible': found 65"));
  task = test::AnswerTask();
  task.metrics.resize(65, task.metrics[0]);
  EXPECT_THAT(Refusal(task), HasSubstr("entries of metric_list: found 65"));
  task = test::AnswerTask();
  task.repeats = 10'001;
  EXPECT_THAT(Refusal(task), HasSubstr("repeats: found 10001, expected at most 10000"));
}

// The error of scoring `repeats` answers under these steps.
std::string RefusalOfAnswers(std::vector<FilterStep> steps, int repeats, const std::string& text) {
  TaskDefinition task = test::AnswerTask();
  task.repeats = repeats;
  task.filters = {{"f", std::move(steps)}};
  std::vector<Generation> answers;
  for (int i = 0; i < repeats; ++i) answers.push_back(test::Answer(0, text, i));
  return RefusalOf([&] { Scorer(task, nullptr).Score(Document("x"), std::move(answers)); });
}

TEST(Scorer, ShortAnswersDoNotBecomeEndlesslyLong) {
  const std::string mebibyte(1 << 20, 'x');
  const Json take_first = Json::object();
  EXPECT_THAT(
      RefusalOfAnswers({{"map", {{"mapping_dict", Json::object()}, {"default_value", mebibyte}}},
                        {"take_first", take_first}},
                       10'000, "x"),
      HasSubstr("the filtered responses take more than 128"));
  EXPECT_THAT(RefusalOfAnswers({{"regex", {{"regex_pattern", "(#)"}, {"fallback", mebibyte}}},
                                {"take_first", take_first}},
                               10'000, "x"),
              HasSubstr("the filtered responses take more than 128"));
  const std::string long_text(1'000'001, 'y');
  EXPECT_THAT(
      RefusalOfAnswers({{"take_first", take_first}, {"lowercase", take_first}}, 1, long_text),
      HasSubstr("found a text of 1000001 characters"));
  EXPECT_EQ(
      RefusalOfAnswers({{"take_first", take_first}, {"take_first", take_first}}, 1, long_text), "");
}

TEST(Scorer, RefusesWhatItDoesNotKnowByItsName) {
  TaskDefinition task = test::AnswerTask();
  task.metrics[0].metric = "exact_mach";
  EXPECT_THAT(Refusal(task), HasSubstr("did you mean 'exact_match'"));
  task = test::AnswerTask();
  task.metrics[0].metric = "acc_all";
  EXPECT_THAT(Refusal(task), HasSubstr("the metric 'acc_all' is not served"));
  task = test::AnswerTask();
  task.metrics[0].aggregation = "chrf";
  EXPECT_THAT(Refusal(task), HasSubstr("and the aggregation 'chrf' takes a pair of texts"));
  task.metrics[0].aggregation = "medians";
  EXPECT_THAT(Refusal(task), HasSubstr("did you mean 'median'"));
  task = test::AnswerTask();
  task.filters[0].steps[0].function = "regx";
  EXPECT_THAT(Refusal(task), HasSubstr("did you mean 'regex'"));
  task = test::AnswerTask();
  task.filters[0].steps[0].kwargs["group_selct"] = 0;
  EXPECT_THAT(Refusal(task), HasSubstr("did you mean 'group_select'"));
  task = test::AnswerTask();
  task.filters[0].steps[0].kwargs["regex_pattern"] = "(";
  EXPECT_THAT(Refusal(task), HasSubstr("filter pipeline 'strict'"));
  task = test::AnswerTask();
  task.metrics[0].kwargs["ignore_cas"] = true;
  EXPECT_THAT(Refusal(task), HasSubstr("did you mean 'ignore_case'"));
  task = test::CodeTask();
  task.metrics[0].function = "humaneval/utils.pass_at_kk";
  EXPECT_THAT(Refusal(task), HasSubstr("did you mean 'humaneval/utils.pass_at_k'"));
  task = test::CodeTask();
  task.filters[0].steps[0].kwargs["filter_fn"] = "!function humaneval/utils.nothing";
  EXPECT_THAT(Refusal(task), HasSubstr("humaneval/utils.nothing"));
  task = test::AnswerTask();
  task.process_results = "x/utils.process_results";
  EXPECT_THAT(Refusal(task), HasSubstr("x/utils.process_results"));
  task = test::AnswerTask();
  task.output_type = "multiple_choise";
  EXPECT_THAT(Refusal(task), HasSubstr("did you mean 'multiple_choice'"));
}

// Otherwise such a task would only fail after all of it was generated.
TEST(Scorer, RefusesAnAggregationThatNeverTakesTheMetric) {
  TaskDefinition task = test::AnswerTask();
  task.output_type = "multiple_choice";
  const auto refusal = [&](const char* metric, const char* aggregation) {
    task.metrics = {{metric, "", aggregation}};
    return Refusal(task);
  };
  EXPECT_THAT(refusal("likelihood", "mean"),
              HasSubstr("the metric 'likelihood' gives a label and a list of numbers"));
  EXPECT_THAT(refusal("acc", "f1"), HasSubstr("the aggregation 'f1' takes a pair of numbers"));
  EXPECT_THAT(refusal("mcc", "median"), HasSubstr("the metric 'mcc' gives a pair of numbers"));
  for (const auto& [metric, aggregation] : {std::pair{"acc", "mean"},
                                            {"f1", "f1"},
                                            {"mcc", "matthews_corrcoef"},
                                            {"brier_score", "brier_score"},
                                            {"acc_norm", "median"},
                                            {"bypass", "mean"}}) {
    EXPECT_EQ(refusal(metric, aggregation), "") << metric;
  }
}

// numpy's `argmax == [2]` is a list of one truth value, which Python accepts as that value. A list
// of several truth values is an error.
TEST(Scorer, MutualInformationTakesAListOfOneLabel) {
  TaskDefinition task = test::AnswerTask();
  task.output_type = "multiple_choice";
  task.multiple_target = true;
  task.metrics = {{"acc_mutual_info", "", "mean"}};
  const auto results = MakeMultipleChoiceResults(task);
  PreparedDocument document = Document("");
  document.choices = {"red", "blue"};
  const std::vector<Json> responses = {{-4.0, false}, {-3.0, false}, {-9.0, false}, {-2.0, false}};
  for (const int label : {0, 1}) {
    document.target = Json::array({label});
    results->Check(document);
    EXPECT_EQ(results->Run(document, responses, nullptr)["acc_mutual_info"],
              label == 0 ? 1.0 : 0.0);
  }
  for (const Json& target : {Json::array({0, 1}), Json::array()}) {
    document.target = target;
    EXPECT_THROW(results->Check(document), Error) << target.dump();
  }
}

// Recorded from lm_eval 0.4.13: numpy finds no text equal to a number, and nothing in an empty
// list. Its arguments fail on lists without text.
TEST(Scorer, AListOfTargetsWithoutTextIsUnequal) {
  TaskDefinition task = test::AnswerTask();
  task.multiple_target = true;
  const auto check = [&](const Json& kwargs, const Json& target) {
    task.metrics = {{"exact_match", "", "mean", true, kwargs}};
    const auto results = MakeGenerationResults(task, nullptr);
    PreparedDocument document = Document("");
    document.target = target;
    results->Check(document);
    return results->Run(document, {"1"}, nullptr)["exact_match"].get<double>();
  };
  const Json none = Json::object();
  EXPECT_EQ(check(none, Json::array()), 0.0);
  EXPECT_EQ(check({{"regexes_to_ignore", {"x"}}}, Json::array()), 0.0);
  EXPECT_EQ(check(none, {1, 2.5, true}), 0.0);
  EXPECT_EQ(check(none, {"0", "1"}), 1.0);
  EXPECT_THROW(check({{"ignore_case", true}}, Json::array()), Error);
  EXPECT_THROW(check({{"regexes_to_ignore", {"x"}}}, {1, 2}), Error);
  EXPECT_THROW(check(none, {"1", 1}), Error);
  EXPECT_THROW(check(none, {nullptr}), Error);
}

TEST(Scorer, ScoresOddGenerations) {
  const Scorer scorer(test::AnswerTask(), nullptr);
  const auto score = [&](const std::string& text) {
    const ScoredDocument scored = scorer.Score(Document("so #### 18"), {test::Answer(0, text)});
    return std::pair(scored.filters[0].metrics["exact_match"].get<double>(),
                     scored.filters[1].metrics["exact_match"].get<double>());
  };
  EXPECT_EQ(score("#### 18"), std::pair(1.0, 1.0));
  EXPECT_EQ(score("it is 18"), std::pair(0.0, 1.0));
  EXPECT_EQ(score(""), std::pair(0.0, 0.0));
  EXPECT_EQ(score("\xff\xfe#### 18"), std::pair(1.0, 1.0)) << "not UTF-8";
  EXPECT_EQ(score(std::string("#### 18\0", 8)), std::pair(1.0, 1.0));
  EXPECT_EQ(score(std::string(10 << 20, 'x') + " #### 18"), std::pair(1.0, 1.0)) << "10 MB";
  EXPECT_EQ(score(std::string(10 << 20, '7')), std::pair(0.0, 0.0)) << "10 MB of digits";
}

TEST(Scorer, RunsCandidatesAndEstimatesPassAtK) {
  FakeRunner runner;
  const Scorer scorer(test::CodeTask(), &runner);
  const ScoredDocument scored = scorer.Score(
      Document("check(f)"),
      {test::Answer(0, "good", 0), test::Answer(0, "bad", 1), test::Answer(0, "bad", 2)});
  EXPECT_EQ(runner.sources[0], "def f():\ngood\ncheck(f)");
  EXPECT_EQ(scored.filters[0].metrics["pass@1"].get<double>(), PassAtK(3, 1, 1));
  EXPECT_EQ(scored.filters[0].metrics["pass@2"].get<double>(), PassAtK(3, 1, 2));
  EXPECT_EQ(scored.detail["create_test"].size(), 3U);
  EXPECT_EQ(scored.detail["create_test"][1]["status"], "failed");
  EXPECT_DOUBLE_EQ(PassAtK(3, 1, 2), 2.0 / 3);
  EXPECT_EQ(PassAtK(5, 5, 1), 1.0);
  EXPECT_EQ(PassAtK(5, 0, 5), 0.0);
}

TEST(Scorer, ABrokenSandboxIsNoWrongAnswer) {
  FakeRunner runner;
  const Scorer scorer(test::CodeTask(), &runner);
  const Error e = Caught([&] { scorer.Score(Document("t"), {test::Answer(0, "broken")}); });
  EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
}

TEST(Scorer, ARequestWithoutGenerationIsAnInfrastructureError) {
  TaskDefinition task = test::AnswerTask();
  task.output_type = "multiple_choice";
  task.metrics = {{"acc", "", "mean", true, Json::object()}};
  task.filters = {{"none", {{"take_first", Json::object()}}}};
  const Scorer scorer(task, nullptr);
  PreparedDocument document = Document("");
  document.target = 1;
  document.choices = {"a", "b"};
  Generation first, third;
  first.kind = third.kind = RequestKind::kLoglikelihood;
  third.idx = 2;
  EXPECT_THROW(scorer.Score(document, {first, third}), Error);
  EXPECT_EQ(scorer.Requests(document), 2);
}

TEST(Numpy, ArgMaxTakesTheFirstOfEqualsAndNan) {
  EXPECT_EQ(ArgMax({1, 3, 3, 2}), 1U);
  EXPECT_EQ(ArgMax({-INFINITY, -INFINITY}), 0U);
  EXPECT_EQ(ArgMax({1, NAN, 5}), 1U);
}

}  // namespace
}  // namespace evald

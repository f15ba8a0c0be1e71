// Policies applied to results with samples, and the reports about their outcomes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "orchestrator/verdict/examples.h"
#include "orchestrator/verdict/judgement.h"
#include "orchestrator/verdict/reports.h"
#include "orchestrator/verdict/result_set.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Results written by hand: tasks with one metric each.
class Side {
 public:
  explicit Side(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    results_ = {{"results", Json::object()},
                {"group_subtasks", Json::object()},
                {"higher_is_better", Json::object()},
                {"configs", Json::object()},
                {"model_name", "model"}};
  }

  Side& Task(const std::string& task, const std::vector<double>& values,
             const std::string& metric = "acc", const std::string& aggregation = "mean",
             bool higher = true) {
    std::string lines;
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += values[i];
      lines += ToLine({{"doc_id", i},
                       {"filter", "none"},
                       {"metrics", {metric}},
                       {"doc_hash", task + std::to_string(i)},
                       {"prompt_hash", "p"},
                       {metric, values[i]},
                       {"target", "<b>"},
                       {"arguments", {{"gen_args_0", {{"arg_0", "<script>alert(1)</script>"}}}}},
                       {"resps", {{"</pre><img src=x>"}}}}) +
               "\n";
    }
    WriteFileAtomic(folder_ / ("samples_" + task + ".jsonl"), lines);
    const double mean = sum / static_cast<double>(values.size());
    results_["results"][task] = {{metric + ",none", aggregation == "mean" ? mean : std::exp(-mean)},
                                 {"sample_len", values.size()}};
    results_["higher_is_better"][task] = {{metric, higher}};
    results_["configs"][task] = {
        {"metric_list", {{{"metric", metric}, {"aggregation", aggregation}}}}};
    return *this;
  }
  Side& Value(const std::string& task, const std::string& metric, const Json& value) {
    results_["results"][task][metric + ",none"] = value;
    return *this;
  }
  Side& Version(const std::string& task, const Json& version) {
    results_["versions"][task] = version;
    return *this;
  }
  Side& Incomplete(const std::string& problem) {
    results_["evald"]["complete"] = false;
    results_["evald"]["problems"] = {problem};
    return *this;
  }
  Side& Texts(const std::string& task, int64_t answers, int64_t truncated) {
    results_["evald"]["truncated_answers"][task] = {{"answers", answers}, {"truncated", truncated}};
    return *this;
  }
  Side& Group(const std::string& name, const std::vector<std::string>& tasks, double value) {
    results_["results"][name] = {{"acc,none", value}};
    results_["group_subtasks"][name] = tasks;
    results_["higher_is_better"][name] = {{"acc", true}};
    return *this;
  }
  ResultSet Set() {
    WriteFileAtomic(folder_ / "results.json", ToLine(results_));
    return ResultSet::Open(folder_);
  }

 private:
  std::filesystem::path folder_;
  Json results_;
};

std::vector<double> Ones(size_t n, size_t wrong = 0) {
  std::vector<double> values(n, 1.0);
  for (size_t i = 0; i < wrong; ++i) values[i] = 0;
  return values;
}

class Judging : public ::testing::Test {
 protected:
  GatePolicy Policy(const std::string& rules) {
    const auto file = scratch_.path() / "gates.yaml";
    WriteFileAtomic(file, "rules: [" + rules + "]\n");
    return ReadGatesFile(file);
  }
  Side Candidate() { return Side(scratch_.path() / "candidate"); }
  Side Baseline() { return Side(scratch_.path() / "baseline"); }
  Verdict Run(const std::string& rules, Side candidate, Side baseline,
              ExitStatus run = ExitStatus::kDone) {
    ResultSet mine = candidate.Set(), other = baseline.Set();
    return Judge(Policy(rules), &mine, &other, run, {});
  }
  TemporaryFolder scratch_;
};

TEST_F(Judging, TasksOfOtherVersionsAreComparedOnlyIfAPolicySaysSo) {
  const auto side = [](Side side, const Json& version) {
    side.Task("t", Ones(300)).Version("t", version).Task("u", Ones(300)).Version("u", "Yaml");
    side.Group("both", {"t", "u"}, 1.0);
    return side;
  };
  ResultSet mine = side(Candidate(), 3.0).Set(), other = side(Baseline(), 2).Set();
  GatePolicy policy = Policy(
      "{task: t, metric: acc, max_drop: 0.01}, {task: u, metric: acc, max_drop: 0.01},"
      "{task: both, metric: acc, max_drop: 0.01}, {task: t, metric: acc, min: 0.5}");
  const Verdict refused = Judge(policy, &mine, &other, ExitStatus::kDone, {});
  EXPECT_EQ(refused.gates[0].outcome, Outcome::kNotScored);
  EXPECT_THAT(refused.gates[0].cause, HasSubstr("t (3.0 against 2)"));
  EXPECT_EQ(refused.gates[1].outcome, Outcome::kPass) << refused.gates[1].cause;
  EXPECT_EQ(refused.gates[2].outcome, Outcome::kNotScored) << "the group has the task";
  EXPECT_EQ(refused.gates[3].outcome, Outcome::kPass) << "no baseline is needed";
  EXPECT_EQ(refused.status, ExitStatus::kUsage);
  EXPECT_EQ(ToJson(refused).at("other_versions"), Json::array({"t (3.0 against 2)"}));
  policy.other_versions = true;
  const Verdict compared = Judge(policy, &mine, &other, ExitStatus::kDone, {});
  EXPECT_EQ(compared.status, ExitStatus::kDone);
  EXPECT_THAT(VerdictText(compared), HasSubstr("other versions of tasks: t (3.0 against 2)"));
}

TEST_F(Judging, TheTextFitsTheTerminalAndFoldsGroups) {
  const std::string long_name = "a_subject_with_quite_a_long_name_of_its_own";
  const auto side = [&](Side side, int wrong) {
    side.Task(long_name, Ones(300, wrong)).Task("u", Ones(300)).Task("alone", Ones(300, wrong));
    side.Group("both", {long_name, "u"}, 1.0 - wrong / 600.0);
    return side;
  };
  Side a = side(Candidate(), 40), b = side(Baseline(), 2);
  ResultSet mine = a.Set(), other = b.Set();
  GatePolicy policy = Policy("{task: " + long_name + ", metric: acc, max_drop: 0.01}");
  const Verdict verdict = Judge(policy, &mine, &other, ExitStatus::kDone, {});
  const std::string wide = VerdictText(verdict);
  EXPECT_THAT(wide, HasSubstr("\nu "));
  const std::string text =
      VerdictText(verdict, {.columns = 80, .folded = mine.results()["group_subtasks"]});
  for (const std::string& line : Split(text.substr(0, text.find("\n\n")), '\n'))
    EXPECT_LE(CodePoints(line), 80u) << line;
  EXPECT_THAT(text, HasSubstr("both"));
  EXPECT_THAT(text, HasSubstr("alone"));
  EXPECT_THAT(text, Not(HasSubstr("\nu ")));
  EXPECT_THAT(text, HasSubstr("2 tasks and groups within these groups: --all"));
}

TEST_F(Judging, VersionsThatAreEqualNumbersOrUnknownAreNoOthers) {
  const auto same = [&](const Json& mine, const Json& theirs) {
    Side candidate = Candidate().Task("t", Ones(300)), baseline = Baseline().Task("t", Ones(300));
    if (!mine.is_null()) candidate.Version("t", mine);
    if (!theirs.is_null()) baseline.Version("t", theirs);
    return Run("{task: t, metric: acc, max_drop: 0.01}", candidate, baseline)
        .other_versions.empty();
  };
  EXPECT_TRUE(same(3, 3.0));
  EXPECT_TRUE(same(3, Json()));
  EXPECT_TRUE(same(Json(), 3));
  EXPECT_FALSE(same("3", 3));
}

TEST_F(Judging, ThePointDecidesAMinimumUnlessAskedForConfidence) {
  const std::string rules =
      "{task: t, metric: acc, min: 0.9}, {task: t, metric: acc, min: 0.9, confident: true},"
      "{task: t, metric: acc, max: 0.5}, {task: t, metric: acc, min: 0.5, confident: true}";
  const Verdict verdict =
      Run(rules, Candidate().Task("t", Ones(40, 3)), Baseline().Task("t", Ones(40)));
  EXPECT_EQ(verdict.gates[0].outcome, Outcome::kPass);
  EXPECT_EQ(verdict.gates[1].outcome, Outcome::kInconclusive);
  EXPECT_EQ(verdict.gates[2].outcome, Outcome::kFail);
  EXPECT_EQ(verdict.gates[3].outcome, Outcome::kPass);
  EXPECT_EQ(verdict.status, ExitStatus::kGateFailed) << "failed goes before inconclusive";
}

TEST_F(Judging, ANumberThatIsNoneMeetsNoGate) {
  const auto side = [&](Side side, const Json& value) {
    side.Task("t", Ones(40, 3));
    side.Value("t", "acc", value);
    return side;
  };
  const std::string rules =
      "{task: t, metric: acc, min: 0.5}, {task: t, metric: acc, max: 1.5},"
      "{task: t, metric: acc, min: 0.5, confident: true}, {task: t, metric: acc, max_drop: 0.1}";
  const Verdict nan = Run(rules, side(Candidate(), "nan"), side(Baseline(), 0.9));
  for (const GateResult& gate : nan.gates) {
    EXPECT_EQ(gate.outcome, Outcome::kFail) << gate.gate.Rule() << ": " << gate.cause;
    EXPECT_EQ(gate.status, ExitStatus::kGateFailed);
  }
  EXPECT_EQ(ToJson(nan)["gates"][0]["candidate"], "nan");
  EXPECT_EQ(ToJson(nan)["comparisons"][0]["candidate"], "nan");
  EXPECT_THAT(nan.gates[0].cause, HasSubstr("does not meet the minimum of 0.5"));

  const Verdict infinite = Run(rules, side(Candidate(), "inf"), side(Baseline(), 0.9));
  const Outcome expected[] = {Outcome::kPass, Outcome::kFail, Outcome::kPass, Outcome::kPass};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(infinite.gates[i].outcome, expected[i]) << i;

  const Verdict from = Run(rules, side(Candidate(), 0.9), side(Baseline(), "nan"));
  EXPECT_EQ(from.gates[3].outcome, Outcome::kNotScored);
  EXPECT_THAT(from.gates[3].cause, HasSubstr("the baseline's value is nan"));
  const Verdict list = Run(rules, side(Candidate(), Json::array({1, 2})), Baseline());
  EXPECT_EQ(list.gates[0].status, ExitStatus::kUsage);
  EXPECT_THAT(list.gates[0].cause, HasSubstr("the value of t acc is no number, but [1,2]"));
}

TEST_F(Judging, TruncatedAnswersAreBoundedByTask) {
  const auto candidate = [&] {
    return Candidate()
        .Task("a", Ones(10))
        .Task("b", Ones(10))
        .Task("choice", Ones(10))
        .Group("g", {"a", "b"}, 1.0)
        .Texts("a", 100, 3)
        .Texts("b", 50, 0);
  };
  const auto run = [&](const std::string& gates) {
    const auto file = scratch_.path() / "gates.yaml";
    WriteFileAtomic(file, gates);
    ResultSet mine = candidate().Set();
    return Judge(ReadGatesFile(file), &mine, nullptr, ExitStatus::kDone, {});
  };
  const Verdict met = run("truncated: {max: 0.03}\n");
  EXPECT_EQ(met.status, ExitStatus::kDone);
  EXPECT_EQ(met.gates[0].candidate, 0.03) << "that of the task with the largest share";
  const Verdict failed = run("truncated: {max: 0.02}\n");
  EXPECT_EQ(failed.status, ExitStatus::kGateFailed);
  EXPECT_EQ(failed.gates[0].cause,
            "above the maximum of 0.02: a: 3 of 100 answers (3.0 %) ran into max_gen_toks");
  EXPECT_EQ(ToJson(failed)["gates"][0]["task"], "*");
  // A task's own gate takes the place of the one for every task, also by way of its group.
  for (const char* own : {"a", "g"}) {
    const Verdict both = run(fmt::format(
        "truncated: {{max: 0.02}}\nrules: [{{task: {}, metric: truncated, max: 0.05}}]\n", own));
    EXPECT_EQ(both.status, ExitStatus::kDone) << own;
  }
  EXPECT_EQ(run("rules: [{task: g, metric: truncated, max: 0.019}]\n").gates[0].outcome,
            Outcome::kFail)
      << "3 of 150";
  EXPECT_EQ(run("rules: [{task: g, metric: truncated, max: 0.02}]\n").gates[0].outcome,
            Outcome::kPass);
  const Verdict none = run("rules: [{task: choice, metric: truncated, max: 0.5}]\n");
  EXPECT_EQ(none.status, ExitStatus::kUsage);
  EXPECT_THAT(none.gates[0].cause, HasSubstr("'choice' generates no text"));
}

TEST_F(Judging, TruncatedAnswersNeedResultsThatCountThem) {
  const auto file = scratch_.path() / "gates.yaml";
  WriteFileAtomic(file, "truncated: {max: 0.02}\n");
  ResultSet mine = Candidate().Task("t", Ones(10)).Set();
  const Verdict verdict = Judge(ReadGatesFile(file), &mine, nullptr, ExitStatus::kDone, {});
  EXPECT_EQ(verdict.status, ExitStatus::kUsage);
  EXPECT_THAT(verdict.gates[0].cause, HasSubstr("do not say how many answers are truncated"));
  const Verdict unfinished =
      Judge(ReadGatesFile(file), &mine, nullptr, ExitStatus::kIncomplete, {"no space"});
  EXPECT_EQ(unfinished.gates[0].status, ExitStatus::kIncomplete);
  EXPECT_EQ(unfinished.gates[0].cause, "the run was not finished: no space");
  const ResultSet choices = Candidate().Task("t", Ones(1)).Texts("none", 1, 0).Set();
  EXPECT_THAT(CaughtText([&] {
                CheckPolicy(Policy("{task: t, metric: truncated, max: 0.1}"), choices, nullptr);
              }),
              HasSubstr("'t' generates no text"));
}

TEST_F(Judging, TheStatusIsTheForemostOfTheCriticalGates) {
  EXPECT_EQ(Foremost(ExitStatus::kInconclusive, ExitStatus::kGateFailed), ExitStatus::kGateFailed);
  EXPECT_EQ(Foremost(ExitStatus::kGateFailed, ExitStatus::kIncomplete), ExitStatus::kIncomplete);
  EXPECT_EQ(Foremost(ExitStatus::kIncomplete, ExitStatus::kUsage), ExitStatus::kUsage);
  EXPECT_EQ(Foremost(ExitStatus::kDone, ExitStatus::kInconclusive), ExitStatus::kInconclusive);
  const Verdict verdict =
      Run("{task: t, metric: acc, min: 2, tier: advisory}, {task: t, metric: acc, max_drop: 0}",
          Candidate().Task("t", Ones(10)), Baseline().Task("t", Ones(10)));
  EXPECT_EQ(verdict.status, ExitStatus::kInconclusive);
}

TEST_F(Judging, AnAdvisoryGateDoesNotChangeWhatBlocks) {
  std::string rules = "{task: t, metric: acc, max_drop: 0}";
  EXPECT_EQ(Run(rules, Candidate().Task("t", Ones(80, 5)), Baseline().Task("t", Ones(80))).status,
            ExitStatus::kGateFailed);
  for (int i = 0; i < 5; ++i)
    rules +=
        ", {task: t, metric: acc, max_drop: 0.3, tier: advisory, name: n" + std::to_string(i) + "}";
  EXPECT_EQ(Run(rules, Candidate().Task("t", Ones(80, 5)), Baseline().Task("t", Ones(80))).status,
            ExitStatus::kGateFailed);
}

TEST_F(Judging, ARelativeDropIsOfTheBaselinesValue) {
  const Verdict verdict =
      Run("{task: t, metric: acc, max_relative_drop: 0.5}", Candidate().Task("t", Ones(400, 250)),
          Baseline().Task("t", Ones(400, 200)));
  EXPECT_DOUBLE_EQ(verdict.gates[0].margin, 0.25);
  EXPECT_EQ(verdict.gates[0].outcome, Outcome::kPass);
}

TEST_F(Judging, AGroupIsComparedOverItsDocuments) {
  const auto sides = [&](double mine, double other) {
    return Run(
        "{task: g, metric: acc, max_drop: 0}",
        Candidate().Task("a", Ones(300, 60)).Task("b", Ones(100)).Group("g", {"a", "b"}, mine),
        Baseline().Task("a", Ones(300)).Task("b", Ones(100)).Group("g", {"a", "b"}, other));
  };
  const Verdict pooled = sides(0.85, 1);
  EXPECT_EQ(pooled.gates[0].outcome, Outcome::kFail) << pooled.gates[0].cause;
  EXPECT_THAT(pooled.gates[0].evidence->method(), HasSubstr("McNemar"));
  EXPECT_DOUBLE_EQ(pooled.gates[0].evidence->estimate(), 0.15);
  const Verdict plain = sides(0.9, 1);  // the mean of its tasks
  ASSERT_NE(plain.gates[0].evidence, nullptr) << plain.gates[0].cause;
  EXPECT_THAT(plain.gates[0].evidence->method(), HasSubstr("bootstrap"));
  EXPECT_NEAR(plain.gates[0].evidence->estimate(), 0.1, 1e-12);
  EXPECT_EQ(sides(0.7, 1).status, ExitStatus::kUsage) << "neither gives 0.7";
}

TEST_F(Judging, AMetricOfAnotherScaleIsBootstrappedInItsDirection) {
  std::vector<double> mine, other;
  for (int i = 0; i < 200; ++i) {
    other.push_back(-1.0 - 0.01 * (i % 17));
    mine.push_back(other.back() - 0.3 - 0.01 * (i % 5));
  }
  const auto sides = [&](const std::string& rule, const std::vector<double>& a,
                         const std::vector<double>& b) {
    return Run(rule, Candidate().Task("t", a, "perplexity", "perplexity", false),
               Baseline().Task("t", b, "perplexity", "perplexity", false));
  };
  const std::string rule = "{task: t, metric: perplexity, max_relative_drop: 0.05}";
  const Verdict worse = sides(rule, mine, other);
  EXPECT_EQ(worse.gates[0].outcome, Outcome::kFail) << worse.gates[0].cause;
  EXPECT_GT(worse.gates[0].evidence->estimate(), 0) << "a higher perplexity is a drop";
  EXPECT_EQ(sides(rule, other, mine).gates[0].outcome, Outcome::kPass);
  EXPECT_EQ(sides(rule, other, other).gates[0].outcome, Outcome::kPass);
  const std::vector<double> few(other.begin(), other.begin() + 29);
  EXPECT_THAT(sides(rule, few, few).gates[0].cause, HasSubstr("at least 30 documents"));
}

TEST_F(Judging, WhatIsWrongWithOneGateIsItsCause) {
  const Verdict verdict =
      Run("{task: t, metric: ac, min: 0}, {task: u, metric: acc, min: 0}, {task: t, metric: acc, "
          "filter: none, min: 0}",
          Candidate().Task("t", Ones(5)), Baseline().Task("t", Ones(5)));
  EXPECT_THAT(verdict.gates[0].cause, HasSubstr("did you mean 'acc'?"));
  EXPECT_THAT(verdict.gates[1].cause, HasSubstr("no results of 'u'"));
  EXPECT_EQ(verdict.gates[2].outcome, Outcome::kPass);
  EXPECT_EQ(verdict.status, ExitStatus::kUsage);
  const Verdict incomplete = Run("{task: u, metric: acc, min: 0}", Candidate().Task("t", Ones(5)),
                                 Baseline().Task("t", Ones(5)), ExitStatus::kIncomplete);
  EXPECT_EQ(incomplete.status, ExitStatus::kIncomplete);
  EXPECT_EQ(incomplete.gates[0].outcome, Outcome::kNotScored);
}

// The results that a run will have, checked before the run.
class BeforeARun : public Judging {
 protected:
  std::string Refusal(const std::string& rules, const std::string& top = "") {
    const auto file = scratch_.path() / "gates.yaml";
    WriteFileAtomic(file, top + "rules:\n  - " + rules + "\n");
    return CaughtText([&] { CheckGates(ReadGatesFile(file), expected_, {}, complete_); });
  }
  Json expected_ = {{"results",
                     {{"t", {{"acc,none", 0.0}, {"acc_norm,none", 0.0}}},
                      {"u", {{"exact_match,strict", 0.0}, {"exact_match,flexible", 0.0}}},
                      {"g", {{"alias", "g"}}}}},
                    {"group_subtasks", {{"g", {"t", "u"}}}},
                    {"higher_is_better", {{"t", {{"acc", true}}}}}};
  bool complete_ = true;
};

TEST_F(BeforeARun, AGateIsOnWhatTheTasksWillHave) {
  EXPECT_EQ(Refusal("{task: t, metric: acc, min: 0}"), "");
  EXPECT_EQ(Refusal("{task: u, metric: exact_match, filter: strict, min: 0}"), "");
  const auto line = (scratch_.path() / "gates.yaml").string() + ":2: key 'rules[0].";
  EXPECT_EQ(Refusal("{task: t, metric: ac, min: 0}"),
            line + "metric': 't' has no metric 'ac'; did you mean 'acc'?; it has acc, acc_norm");
  EXPECT_EQ(Refusal("{task: u, metric: exact_match, min: 0}"),
            line +
                "metric': 'u' has 'exact_match' for several filters; add one of them: filter: "
                "strict or flexible");
  EXPECT_EQ(Refusal("{task: u, metric: exact_match, filter: strikt, min: 0}"),
            line +
                "filter': 'u' has no 'exact_match' for a filter 'strikt'; did you mean 'strict'?; "
                "it has exact_match for strict, "
                "flexible");
  EXPECT_EQ(Refusal("{task: g, metric: acc, min: 0}"),
            line + "task': 'g' has no metrics; it is a heading; name one of t, u");
  EXPECT_EQ(Refusal("{task: elsewhere, metric: acc, min: 0}"),
            line + "task': 'elsewhere' is not evaluated; evaluated are t, u, g");
}

TEST_F(BeforeARun, AFunctionOfTheTaskMayGiveOtherMetrics) {
  const std::string rule = "{task: t, metric: own, min: 0}",
                    drop = "{task: t, metric: own, max_drop: 0, direction: higher}";
  EXPECT_THAT(Refusal(rule), HasSubstr("'t' has no metric 'own'"));
  expected_["evald"] = {{kMetricsByFunction, {"t"}}};
  EXPECT_EQ(Refusal(rule), "");
  EXPECT_THAT(Refusal(drop), HasSubstr("needs a baseline"));
  Baseline().Task("t", Ones(3)).Set();
  EXPECT_EQ(Refusal(drop, "baseline: baseline\n"), "");
  EXPECT_THAT(Refusal("{task: t, metric: own, max_drop: 0}", "baseline: baseline\n"),
              HasSubstr("add direction: higher or direction: lower"));
  EXPECT_EQ(Refusal("{task: t, metric: acc, min: 0}"), "");
  EXPECT_THAT(Refusal("{task: u, metric: own, min: 0}"), HasSubstr("'u' has no metric 'own'"));
}

TEST_F(BeforeARun, ABaselineHasWhatADropIsMeasuredBy) {
  const std::string drop = "{task: t, metric: acc, max_drop: 0}";
  EXPECT_THAT(Refusal(drop), HasSubstr("gates.yaml:2: key 'rules[0].max_drop': needs a baseline"));
  EXPECT_THAT(Refusal(drop, "baseline: nowhere\n"), HasSubstr("gates.yaml:1: key 'baseline': "));
  Baseline().Task("t", Ones(3)).Set();
  EXPECT_EQ(Refusal(drop, "baseline: baseline\n"), "");
  EXPECT_THAT(Refusal("{task: t, metric: acc_norm, max_drop: 0}", "baseline: baseline\n"),
              HasSubstr("gates.yaml:3: key 'rules[0].metric': 't' has no metric 'acc_norm' in "));
  EXPECT_THAT(Refusal("{task: u, metric: exact_match, filter: strict, max_drop: 0}",
                      "baseline: baseline\n"),
              HasSubstr("key 'rules[0].task': no results of 'u' in "));
  std::filesystem::remove(scratch_.path() / "baseline/samples_t.jsonl");
  EXPECT_THAT(Refusal(drop, "baseline: baseline\n"), HasSubstr("this samples file is missing"));
}

TEST_F(BeforeARun, ABaselineThatIsStillWorkedOnMayBeAwaited) {
  std::filesystem::create_directories(scratch_.path() / "baseline");
  WriteFileAtomic(scratch_.path() / "baseline/run.json", "{}");
  const std::string drop = "{task: t, metric: acc, max_drop: 0}", top = "baseline: baseline\n";
  EXPECT_THAT(Refusal(drop, top), HasSubstr("this run is not complete"));
  complete_ = false;
  EXPECT_EQ(Refusal(drop, top), "");
  EXPECT_THAT(Refusal("{task: t, metric: ac, max_drop: 0}", top), HasSubstr("did you mean 'acc'?"));
}

TEST_F(Judging, NoDocumentInCommonIsInconclusive) {
  Side candidate = Candidate().Task("t", Ones(3));
  Side baseline = Baseline().Task("t", Ones(3));
  ResultSet mine = candidate.Set(), other = baseline.Set();
  std::string text = ReadFile(scratch_.path() / "baseline" / "samples_t.jsonl");
  for (size_t at = 0; (at = text.find("\"doc_id\":", at)) != std::string::npos; at += 10)
    text.insert(at + 9, "7");
  WriteFileAtomic(scratch_.path() / "baseline" / "samples_t.jsonl", text);
  const Verdict verdict =
      Judge(Policy("{task: t, metric: acc, max_drop: 0}"), &mine, &other, ExitStatus::kDone, {});
  EXPECT_EQ(verdict.gates[0].cause, "they have no document in common");
  EXPECT_EQ(verdict.status, ExitStatus::kInconclusive);
}

TEST_F(Judging, SwappedSidesMirrorTheComparison) {
  Side a = Candidate().Task("t", Ones(100, 30)), b = Baseline().Task("t", Ones(100, 10));
  ResultSet mine = a.Set(), other = b.Set();
  const Json one = ToJson(Compare(&mine, &other, {"t", "acc", "none"}, true));
  const Json two = ToJson(Compare(&other, &mine, {"t", "acc", "none"}, true));
  EXPECT_EQ(one["lost"], 20);
  EXPECT_EQ(two["gained"], 20);
  EXPECT_EQ(one["p"], two["p"]);
  EXPECT_NEAR(one["interval"][0].get<double>(), -two["interval"][1].get<double>(), 1e-9);
  EXPECT_DOUBLE_EQ(one["difference"].get<double>(), -0.2);
}

Verdict Hostile() {
  Verdict verdict;
  verdict.candidate = "m <script>";
  GateResult result;
  result.gate.name = "a|b: <i>`x`, \"y\" 100%\n::error::forged";
  result.gate.task = result.key.task = "t&t";
  result.outcome = Outcome::kFail;
  result.status = ExitStatus::kGateFailed;
  result.cause = "one\ntwo ]]> & \x01";
  verdict.gates.push_back(result);
  verdict.status = ExitStatus::kGateFailed;
  return verdict;
}

TEST(Reports, EscapeEverything) {
  const Verdict verdict = Hostile();
  const std::string annotations = VerdictAnnotations(verdict);
  EXPECT_THAT(annotations, HasSubstr("::error title=evald gate fail%3A a|b%3A <i>`x`%2C \"y\" "
                                     "100%25%0A%3A%3Aerror%3A%3Aforged::one%0Atwo"));
  EXPECT_EQ(std::count(annotations.begin(), annotations.end(), '\n'), 2);
  const std::string junit = VerdictJunit(verdict);
  EXPECT_THAT(junit, HasSubstr("failures=\"1\" errors=\"0\""));
  EXPECT_THAT(junit, HasSubstr("one&#10;two ]]&gt; &amp; ?"));
  EXPECT_THAT(junit, Not(HasSubstr("<i>")));
  const std::string markdown = VerdictMarkdown(verdict, Json::object());
  EXPECT_THAT(markdown, HasSubstr("a\\|b: &lt;i&gt;\\`x\\`"));
  const std::string page =
      VerdictHtml(verdict, Json::object(), {{"t", 3, "<script>", "</pre>", "&amp;", "", false}});
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, HasSubstr("<pre>&amp;amp;</pre>"));
}

TEST(Reports, WriteOutWhatTurnsTheDirectionOfWriting) {
  Verdict verdict = Hostile();
  verdict.gates[0].gate.name = "a\u202egates\u2066b";
  verdict.gates[0].cause = "for \u202d\u2069";
  for (const std::string& report :
       {VerdictHtml(verdict, Json::object(), {{"t", 3, "\u202eq", "x", "y", "", false}}),
        VerdictJunit(verdict), VerdictMarkdown(verdict, Json::object()),
        VerdictAnnotations(verdict)}) {
    EXPECT_THAT(report, Not(::testing::ContainsRegex("\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")));
    EXPECT_THAT(report, HasSubstr("u202egates"));
  }
}

TEST_F(Judging, ThePageShowsWhatWasLostFirst) {
  Side a = Candidate().Task("t", Ones(100, 30)), b = Baseline().Task("t", Ones(100, 28));
  ResultSet mine = a.Set(), other = b.Set();
  const std::vector<Example> examples = WrongAnswers(&mine, &other);
  ASSERT_EQ(examples.size(), 5U);
  EXPECT_TRUE(examples[0].lost && examples[1].lost && !examples[2].lost);
  EXPECT_EQ(examples[0].doc_id, 28);
  EXPECT_EQ(examples[0].answer, "</pre><img src=x>");
  EXPECT_EQ(examples[0].baseline_answer, "</pre><img src=x>");
}

TEST_F(Judging, AJudgementSaysWhatTheVerdictSaysAndComesOutAsItWentIn) {
  Side a = Candidate().Task("t", Ones(400, 40)), b = Baseline().Task("t", Ones(400, 2));
  ResultSet mine = a.Set(), other = b.Set();
  JudgeRequest request;
  request.policy = Policy("{task: t, metric: acc, max_drop: 0.01}");
  request.policy.baseline = scratch_.path() / "baseline";
  request.candidate = scratch_.path() / "candidate";
  std::vector<std::string> done;
  const Judgement judgement =
      JudgeResults(request, {}, [&](const std::string& what) { done.push_back(what); });
  const Verdict verdict = Judge(request.policy, &mine, &other, ExitStatus::kDone, {});
  EXPECT_EQ(judgement.verdict, ToJson(verdict));
  EXPECT_EQ(judgement.status, ExitStatus::kGateFailed);
  EXPECT_EQ(judgement.text, VerdictText(verdict));
  EXPECT_EQ(judgement.page, VerdictHtml(verdict, mine.results(), WrongAnswers(&mine, &other)));
  EXPECT_THAT(done.back(), HasSubstr("baseline"));
  const Judgement back = JudgementFromJson(ParseJson(ToLine(ToJson(judgement)), "test"), "test");
  EXPECT_EQ(ToJson(back), ToJson(judgement));
  EXPECT_EQ(back.verdict.dump(2), ToJson(verdict).dump(2));
  EXPECT_THROW(JudgementFromJson({{"status", 9}}, "test"), Error);
}

TEST_F(Judging, ResultsOfARunThatIsNotCompleteAreSaidToBeSo) {
  const auto unfinished = [](Side side) {
    side.Task("t", Ones(40)).Texts("t", 40, 0).Incomplete("task u: it failed");
    return side;
  };
  JudgeRequest request;
  request.policy =
      Policy("{task: t, metric: acc, min: 0.5}, {task: \"*\", metric: truncated, max: 0.5}");
  request.candidate = scratch_.path() / "candidate";
  unfinished(Candidate()).Set();
  const SayDoing nothing = [](const std::string&) {};
  const Judgement judgement = JudgeResults(request, {}, nothing);
  EXPECT_EQ(judgement.status, ExitStatus::kIncomplete);
  EXPECT_EQ(judgement.verdict["gates"][0]["outcome"], "pass");
  EXPECT_EQ(judgement.verdict["gates"][1]["outcome"], "not scored");
  EXPECT_THAT(judgement.verdict["gates"][1]["cause"].get<std::string>(),
              HasSubstr("task u: it failed"));

  request.policy.baseline = scratch_.path() / "baseline";
  unfinished(Baseline()).Set();
  EXPECT_THAT(CaughtText([&] { JudgeResults(request, {}, nothing); }, ErrorKind::kInput),
              HasSubstr("these are the results of a run that is not complete"));
}

TEST_F(Judging, GatesThatCouldNotBeJudgedSayWhy) {
  JudgeRequest request;
  request.policy =
      Policy("{task: t, metric: acc, min: 0.5}, {task: t, metric: acc, min: 0.6, tier: advisory}");
  request.candidate = "/runs/r";
  const Judgement wrong = NotJudged(request, Error(ErrorKind::kInput, "baseline: too large"));
  EXPECT_EQ(wrong.status, ExitStatus::kUsage);
  EXPECT_EQ(wrong.verdict["status"], "error");
  for (const Json& gate : wrong.verdict["gates"]) {
    EXPECT_EQ(gate["outcome"], "not scored");
    EXPECT_EQ(gate["cause"], "baseline: too large");
  }
  EXPECT_EQ(wrong.failure, "baseline: too large");
  EXPECT_EQ(NotJudged(request, Error(ErrorKind::kInfrastructure, "killed")).verdict["status"],
            "incomplete");
  request.policy.gates.clear();
  EXPECT_EQ(NotJudged(request, Error(ErrorKind::kInfrastructure, "killed")).status,
            ExitStatus::kDone);
}

TEST_F(Judging, ABaselineIsReadWithBounds) {
  ResultSet mine = Candidate().Task("t", Ones(100)).Set();
  Side side = Baseline().Task("t", Ones(100));
  side.Set();
  WriteFileAtomic(scratch_.path() / "baseline" / "samples_t.jsonl", std::string(2'000'001, '\n'));
  ResultSet other = ResultSet::Open(scratch_.path() / "baseline");
  const Error e = Caught([&] { other.Samples("t"); });
  EXPECT_EQ(e.kind(), ErrorKind::kInput);
  EXPECT_THAT(e.what(), HasSubstr("samples_t.jsonl: has more than 2000000 lines"));
  Json results = mine.results();
  results["model_name"] = std::string(10'000'000, 'x');
  EXPECT_LT(ResultSet(results, "/runs/r").label().size(), 1000U);
}

}  // namespace
}  // namespace evald

// Gate policies: those that are read, and those that are refused with file and line.
#include "orchestrator/config/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

class Gates : public ::testing::Test {
 protected:
  GatePolicy Read(const std::string& text) {
    const auto file = scratch_.path() / "gates.yaml";
    WriteFileAtomic(file, text);
    return ReadGatesFile(file);
  }
  std::string Refusal(const std::string& text) {
    const Error error = Caught([&] { Read(text); });
    EXPECT_EQ(ExitStatusFor(error.kind()), ExitStatus::kUsage);
    return error.what();
  }
  TemporaryFolder scratch_;
};

TEST_F(Gates, AreReadWithEveryKey) {
  const GatePolicy policy = Read(R"(baseline: runs/last
alpha: 0.1
resolution: 0.03
rules:
  - {task: math, metric: exact_match, filter: strict, max_drop: 0.01, tier: supporting, direction: lower, resolution: 0.5}
  - {task: choice, metric: acc, min: 0.7, confident: true, name: choice is good}
  - {task: text, metric: perplexity, max_relative_drop: 0.05, tier: advisory}
)");
  EXPECT_EQ(policy.baseline, scratch_.path() / "runs/last");
  EXPECT_EQ(policy.alpha, 0.1);
  ASSERT_EQ(policy.gates.size(), 3U);
  const Gate& first = policy.gates[0];
  EXPECT_EQ(first.name, "math exact_match (strict): max_drop 0.01");
  EXPECT_EQ(first.tier, Tier::kSupporting);
  EXPECT_EQ(first.higher_is_better, false);
  EXPECT_EQ(first.resolution, 0.5);
  EXPECT_THAT(first.where, HasSubstr("gates.yaml:5"));
  EXPECT_EQ(policy.gates[1].name, "choice is good");
  EXPECT_TRUE(policy.gates[1].confident);
  EXPECT_EQ(policy.gates[1].tier, Tier::kCritical);
  EXPECT_EQ(policy.gates[2].kind, GateKind::kMaxRelativeDrop);
  EXPECT_TRUE(policy.NeedsBaseline());
  const Json json = ToJson(policy);
  EXPECT_EQ(json["rules"][0]["max_drop"], 0.01);
  EXPECT_EQ(json["rules"][1]["confident"], true);
}

TEST_F(Gates, BoundTruncatedAnswers) {
  const GatePolicy policy = Read(R"(truncated: {max: 0.02, tier: advisory}
rules: [{task: math, metric: truncated, max: 0.1}]
)");
  ASSERT_EQ(policy.gates.size(), 2U);
  EXPECT_TRUE(policy.gates[0].IsOfTruncated());
  EXPECT_EQ(policy.gates[0].task, kEveryTask);
  EXPECT_EQ(policy.gates[0].name, "every task truncated: max 0.02");
  EXPECT_EQ(policy.gates[0].tier, Tier::kAdvisory);
  EXPECT_EQ(policy.gates[0].kind, GateKind::kMax);
  EXPECT_EQ(policy.gates[1].name, "math truncated: max 0.1");
  EXPECT_TRUE(policy.gates[1].IsOfTruncated());
  EXPECT_FALSE(policy.NeedsBaseline());
  EXPECT_EQ(ToJson(GatePolicyFromJson(ToJsonWithPlaces(policy), "json")), ToJson(policy));
  EXPECT_EQ(Read("truncated: {max: 0}\n").gates.size(), 1U) << "no other rule is needed";

  EXPECT_THAT(
      Refusal("truncated: {}\n"),
      HasSubstr("gates.yaml:1: key 'truncated.max': is absent, expected a share from 0 to 1"));
  EXPECT_THAT(Refusal("truncated: {max: 2}\n"), HasSubstr("key 'truncated.max': found '2'"));
  EXPECT_THAT(Refusal("truncated: 0.02\n"), HasSubstr("expected a mapping"));
  EXPECT_THAT(Refusal("truncated: {min: 0.02}\n"), HasSubstr("unknown key 'truncated.min'"));
  const auto rule = [&](const std::string& keys) {
    return Refusal("rules: [{task: math, metric: truncated, " + keys + "}]\n");
  };
  EXPECT_THAT(rule("min: 0.1"), HasSubstr("'truncated' takes max, a share from 0 to 1"));
  EXPECT_THAT(rule("max: 1.1"), HasSubstr("'truncated' takes max, a share from 0 to 1"));
  EXPECT_THAT(rule("max_drop: 0.1"), HasSubstr("'truncated' takes max"));
  EXPECT_THAT(rule("max: 0.1, filter: strict"), HasSubstr("is the same for every filter"));
  EXPECT_THAT(rule("max: 0.1, confident: true"), HasSubstr("is counted, not estimated"));
}

TEST_F(Gates, ComeBackFromTheirJson) {
  const GatePolicy policy = Read(R"(baseline: runs/last
alpha: 0.1
resolution: 0.03
rules:
  - {task: a, metric: m, min: 0.1, confident: true, resolution: 0.01}
  - {task: b, metric: m, filter: f, max: -3.25, tier: supporting, name: mine}
  - {task: c, metric: m, max_drop: 0.1, direction: lower, tier: advisory}
  - {task: d, metric: m, max_relative_drop: 0.3333333333333333}
)");
  Json json = ToJson(policy);
  json["rules"][0]["where"] = policy.gates[0].where;
  const GatePolicy back = GatePolicyFromJson(Json::parse(json.dump()), "test");
  EXPECT_EQ(ToJson(back), ToJson(policy));
  EXPECT_EQ(back.baseline, policy.baseline);
  EXPECT_EQ(back.gates[0].where, policy.gates[0].where);
  EXPECT_EQ(back.gates[1].where, "");
  json["rules"][1].erase("max");
  EXPECT_THROW(GatePolicyFromJson(json, "test"), Error);
}

TEST_F(Gates, RefuseWithFileLineAndTheNearestKey) {
  EXPECT_THAT(Refusal("rules:\n  - task: a\n    metrc: acc\n    min: 1\n"),
              HasSubstr("gates.yaml:3: unknown key 'rules[0].metrc'; did you mean 'metric'?"));
  EXPECT_THAT(Refusal("rules:\n  - task: a\n    metric: acc\n    mn: 1\n"),
              HasSubstr("gates.yaml:4: unknown key 'rules[0].mn'; did you mean 'min'?"));
  EXPECT_THAT(Refusal("rules:\n  - task: a\n    min: 1\n"),
              HasSubstr("gates.yaml:2: key 'rules[0].metric': is absent"));
  EXPECT_THAT(Refusal("rules:\n  - task: a\n    metric: acc\n    max_dorp: 1\n    min: 0\n"),
              HasSubstr("gates.yaml:4: unknown key 'rules[0].max_dorp'; did you mean 'max_drop'?"));
  EXPECT_THAT(Refusal("ruls: []\n"),
              HasSubstr("gates.yaml:1: unknown key 'ruls'; did you mean 'rules'?"));
  EXPECT_THAT(Refusal("rules: []\n"), HasSubstr("absent or empty"));
  EXPECT_THAT(Refusal("rules: [acc]\n"), HasSubstr("expected a mapping"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc}]\n"), HasSubstr("needs one of min, max"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc, min: 0.5, max_drop: 0}]\n"),
              HasSubstr("together with 'min'"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc, max_drop: -0.1}]\n"),
              HasSubstr("a number from 0"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc, min: 0, tier: criticl}]\n"),
              HasSubstr("did you mean 'critical'?"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc, max_drop: 0, confident: true}]\n"),
              HasSubstr("'rules[0].confident'"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc, min: 0, direction: lower}]\n"),
              HasSubstr("'rules[0].direction'"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc, min: 0, resolution: 0.1}]\n"),
              HasSubstr("'rules[0].resolution'"));
  EXPECT_THAT(Refusal("rules: [{task: a, metric: acc, min: 0}, {task: a, metric: acc, min: 0}]\n"),
              HasSubstr("a second gate is named"));
  EXPECT_THAT(Refusal("alpha: 0.7\nrules: [{task: a, metric: acc, min: 0}]\n"),
              HasSubstr("gates.yaml:1: key 'alpha'"));
}

}  // namespace
}  // namespace evald

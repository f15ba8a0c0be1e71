// The tests and intervals behind gates against scipy, statsmodels and published figures:
// tests/oracle/verdict_golden.py makes the golden file.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/file.h"
#include "base/jsonl.h"
#include "orchestrator/verdict/decide.h"
#include "orchestrator/verdict/evidence.h"

namespace evald {
namespace {

const Json& Golden() {
  static const Json golden = ParseJson(
      ReadFile(std::filesystem::path(EVALD_SOURCE_DIR) / "tests/golden/verdict/statistics.json"),
      "golden");
  return golden;
}

PairCounts Counts(const Json& entry) {
  return {entry["pairs"].get<int64_t>(), entry["lost"].get<int64_t>(),
          entry["gained"].get<int64_t>()};
}

double Rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

TEST(Tango, GivesThePublishedBounds) {
  ASSERT_FALSE(Golden()["published"].empty());
  for (const Json& row : Golden()["published"]) {
    const auto evidence = PairedProportions(Counts(row));
    const double error = (1 - row["level"].get<double>()) / 2;
    const int digits = row["digits"].get<int>();
    EXPECT_DOUBLE_EQ(Rounded(evidence->Lower(error), digits), row["bounds"][0].get<double>())
        << row["where"];
    EXPECT_DOUBLE_EQ(Rounded(evidence->Upper(error), digits), row["bounds"][1].get<double>())
        << row["where"];
  }
}

TEST(Tango, AgreesWithTheConstrainedLikelihoodSolvedNumerically) {
  ASSERT_GT(Golden()["tango"].size(), 40U);
  for (const Json& row : Golden()["tango"]) {
    const auto evidence = PairedProportions(Counts(row));
    for (const Json& bound : row["bounds"]) {
      const double error = bound["error"].get<double>();
      EXPECT_NEAR(evidence->Lower(error), bound["lower"].get<double>(), 1e-6) << row.dump();
      EXPECT_NEAR(evidence->Upper(error), bound["upper"].get<double>(), 1e-6) << row.dump();
    }
    for (const Json& p : row["p"]) {
      const double margin = p["margin"].get<double>();
      EXPECT_NEAR(evidence->PAbove(margin), p["above"].get<double>(), 1e-7) << row.dump();
      EXPECT_NEAR(evidence->PBelow(margin), p["below"].get<double>(), 1e-7) << row.dump();
    }
  }
}

TEST(McNemar, AgreesWithTheBinomialTest) {
  for (const Json& row : Golden()["tango"]) {
    const double expected = row["mcnemar"].get<double>();
    const PairCounts counts = Counts(row);
    EXPECT_NEAR(McNemarOneSided(counts.lost, counts.gained), expected, 1e-10 + 1e-9 * expected)
        << row.dump();
    EXPECT_EQ(PairedProportions(counts)->PAbove(0), McNemarOneSided(counts.lost, counts.gained));
  }
  EXPECT_DOUBLE_EQ(McNemarOneSided(5, 0), 1.0 / 32);
  EXPECT_EQ(McNemarOneSided(0, 0), 1);
}

TEST(Tango, ABoundLiesWhereItsTestTurns) {
  for (const Json& row : Golden()["tango"]) {
    const auto evidence = PairedProportions(Counts(row));
    for (const double error : {0.05, 0.01}) {
      const double lower = evidence->Lower(error), upper = evidence->Upper(error);
      if (lower > -0.999 && lower != 0) {
        EXPECT_NEAR(evidence->PAbove(lower), error, 1e-9) << row.dump();
      }
      if (upper < 0.999) {
        EXPECT_NEAR(evidence->PBelow(upper), error, 1e-9) << row.dump();
      }
      EXPECT_LE(lower, evidence->estimate());
      EXPECT_GE(upper, evidence->estimate());
    }
  }
}

TEST(Tango, SwappingTheSidesMirrorsTheInterval) {
  const auto one = PairedProportions({160, 40, 20});
  const auto other = PairedProportions({160, 20, 40});
  EXPECT_NEAR(one->Lower(0.05), -other->Upper(0.05), 1e-12);
  EXPECT_NEAR(one->Upper(0.01), -other->Lower(0.01), 1e-12);
}

TEST(Wilson, AgreesWithStatsmodels) {
  for (const Json& row : Golden()["wilson"]) {
    const int64_t right = row["right"].get<int64_t>(), total = row["total"].get<int64_t>();
    const double error = row["error"].get<double>();
    for (const double target : {0.1, 0.7}) {
      const auto higher = ShortOfTarget(right, total, target, false);
      EXPECT_NEAR(target - higher->Upper(error), row["lower"].get<double>(), 1e-9) << row.dump();
      EXPECT_NEAR(target - higher->Lower(error), row["upper"].get<double>(), 1e-9) << row.dump();
      const auto lower = ShortOfTarget(right, total, target, true);
      EXPECT_NEAR(target + lower->Lower(error), row["lower"].get<double>(), 1e-9) << row.dump();
      EXPECT_NEAR(target + lower->Upper(error), row["upper"].get<double>(), 1e-9) << row.dump();
    }
  }
}

TEST(HolmProcedure, AgreesWithStatsmodels) {
  for (const Json& row : Golden()["holm"]) {
    const auto p = row["p"].get<std::vector<double>>();
    const std::vector<HolmStep> steps = Holm(p, 0.05);
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_EQ(steps[i].rejected, row["rejected"][i].get<bool>()) << row.dump();
      EXPECT_NEAR(steps[i].adjusted, row["adjusted"][i].get<double>(), 1e-12);
      EXPECT_EQ(steps[i].rejected, p[i] <= steps[i].error)
          << "the level shown is the one that decided";
    }
  }
}

BootstrapInput MeanOf(const std::vector<std::vector<double>>& strata) {
  BootstrapInput input;
  for (const auto& values : strata) input.sizes.push_back(values.size());
  input.drop = [strata](const Resample& resample) {
    double total = 0;
    for (size_t s = 0; s < strata.size(); ++s) {
      double sum = 0;
      for (const uint32_t i : resample[s]) sum += strata[s][i];
      total += sum / static_cast<double>(resample[s].size()) / static_cast<double>(strata.size());
    }
    return total;
  };
  return input;
}

TEST(BcaBootstrap, AgreesWithScipyWithinItsOwnNoise) {
  for (const Json& row : Golden()["bootstrap"]) {
    std::vector<std::vector<double>> strata = {row["values"].get<std::vector<double>>()};
    if (row.contains("second")) strata.push_back(row["second"].get<std::vector<double>>());
    const auto evidence = Bootstrap(MeanOf(strata));
    ASSERT_NE(evidence, nullptr);
    const double deviation = row["standard_error"].get<double>();
    for (const Json& bound : row["bounds"]) {
      const double error = bound["error"].get<double>();
      // Four standard errors of a quantile of 10,000 normal replicates.
      const double density =
          std::exp(-0.5 * std::pow(NormalQuantile(error), 2)) / std::sqrt(2 * M_PI);
      const double noise = 4 * deviation * std::sqrt(error * (1 - error) / 10000) / density * 1.3;
      EXPECT_NEAR(evidence->Lower(error), bound["lower"].get<double>(), noise) << row["name"];
      EXPECT_NEAR(evidence->Upper(error), bound["upper"].get<double>(), noise) << row["name"];
      EXPECT_NEAR(evidence->PAbove(evidence->Lower(error)), error, 1e-3) << row["name"];
      EXPECT_NEAR(evidence->PBelow(evidence->Upper(error)), error, 1e-3) << row["name"];
    }
  }
}

TEST(BcaBootstrap, ManyDocumentsAreLeftOutInGroups) {
  std::vector<double> values(40'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % 100 == 0 ? 100 : 0;
  BootstrapInput input = MeanOf({values});
  size_t calls = 0, drawn = 0;
  input.drop = [&, drop = input.drop](const Resample& resample) {
    ++calls;
    drawn += resample[0].size();
    return drop(resample);
  };
  const auto evidence = Bootstrap(input);
  ASSERT_NE(evidence, nullptr);
  EXPECT_EQ(calls, 1u + 7500 + 1000);
  EXPECT_LT(drawn, 400'000'000u);
  // A skewed sample's upper bound is farther away than its lower bound.
  EXPECT_GT(evidence->Upper(0.01) - 1, 1 - evidence->Lower(0.01));
}

TEST(BcaBootstrap, IsTheSameEveryTime) {
  const BootstrapInput input =
      MeanOf({Golden()["bootstrap"][0]["values"].get<std::vector<double>>()});
  EXPECT_EQ(Bootstrap(input)->Lower(0.05), Bootstrap(input)->Lower(0.05));
  BootstrapInput other = input;
  other.seed += 1;
  EXPECT_NE(Bootstrap(input)->Lower(0.05), Bootstrap(other)->Lower(0.05));
}

TEST(BcaBootstrap, IsNoEvidenceWhereTheDropIsUndefined) {
  BootstrapInput input;
  input.sizes = {10};
  input.drop = [](const Resample&) { return NAN; };
  EXPECT_EQ(Bootstrap(input), nullptr);
  input.drop = [](const Resample& r) {  // undefined if the first document is drawn first
    return r[0][0] == 0 && r[0][1] != 1 ? NAN : 1.0;
  };
  EXPECT_EQ(Bootstrap(input), nullptr);
}

TEST(BcaBootstrap, WithoutSpreadIsCertain) {
  const auto evidence = Bootstrap(MeanOf({std::vector<double>(50, 0.0)}));
  EXPECT_EQ(evidence->Lower(0.05), 0);
  EXPECT_EQ(evidence->Upper(0.05), 0);
  EXPECT_EQ(evidence->PAbove(0), 0.5);
  EXPECT_LT(evidence->PBelow(0.02), 0.001);
}

std::vector<Outcome> Outcomes(const std::vector<PairCounts>& gates, double margin = 0,
                              double resolution = 0.02) {
  std::vector<std::unique_ptr<Evidence>> evidence;
  std::vector<Question> family;
  for (const PairCounts& counts : gates) {
    evidence.push_back(PairedProportions(counts));
    family.push_back({evidence.back().get(), margin, resolution});
  }
  std::vector<Outcome> outcomes;
  for (const Decision& decision : Decide(family, 0.05)) outcomes.push_back(decision.outcome);
  return outcomes;
}

TEST(Decide, FailsPassesOrCannotTell) {
  EXPECT_EQ(Outcomes({{80, 60, 0}})[0], Outcome::kFail);
  EXPECT_EQ(Outcomes({{1000, 2, 3}})[0], Outcome::kPass);
  EXPECT_EQ(Outcomes({{80, 0, 0}})[0], Outcome::kInconclusive)
      << "eighty documents do not show two points";
  EXPECT_EQ(Outcomes({{80, 0, 0}}, 0, 0.05)[0], Outcome::kPass);
  EXPECT_EQ(Outcomes({{1, 0, 0}})[0], Outcome::kInconclusive);
  EXPECT_EQ(Outcomes({{1000, 12, 2}})[0], Outcome::kFail)
      << "a drop that is shown fails though it is small";
}

TEST(Decide, HolmLetsOneGateNotBeJudgedByAnothersLuck) {
  // Five lost and none gained: p = 1/32, enough for one test, not for one of three.
  EXPECT_EQ(Outcomes({{80, 5, 0}})[0], Outcome::kFail);
  EXPECT_EQ(Outcomes({{80, 5, 0}, {80, 1, 1}, {80, 1, 1}})[0], Outcome::kInconclusive);
  // After one clear failure, the next test is only one of the remaining tests.
  EXPECT_EQ(Outcomes({{80, 40, 0}, {80, 5, 0}}),
            (std::vector<Outcome>{Outcome::kFail, Outcome::kFail}));
}

TEST(Decide, BoundsLieOnTheSideThatWasDecided) {
  std::vector<std::unique_ptr<Evidence>> evidence;
  std::vector<Question> family;
  for (const Json& row : Golden()["tango"]) {
    evidence.push_back(PairedProportions(Counts(row)));
    family.push_back({evidence.back().get(), 0.05, 0.02});
  }
  int fails = 0, passes = 0;
  for (const Decision& decision : Decide(family, 0.05)) {
    fails += decision.outcome == Outcome::kFail;
    passes += decision.outcome == Outcome::kPass;
    EXPECT_EQ(decision.outcome == Outcome::kFail, decision.lower > 0.05);
    if (decision.outcome == Outcome::kFail) continue;
    EXPECT_EQ(decision.outcome == Outcome::kPass, decision.upper < 0.07);
  }
  EXPECT_GT(fails, 3);
  EXPECT_GT(passes, 3);
}

// All tables of 60 pairs, weighted by their probability. The one-sided bounds cover the true drop
// about as often as they claim.
TEST(Tango, CoversTheTrueDrop) {
  constexpr int kPairs = 60;
  constexpr double kLost = 0.12, kGained = 0.07;
  double covered_lower = 0, covered_upper = 0, total = 0;
  for (int lost = 0; lost <= kPairs; ++lost) {
    for (int gained = 0; gained + lost <= kPairs; ++gained) {
      const int rest = kPairs - lost - gained;
      const double chance =
          std::exp(std::lgamma(kPairs + 1.0) - std::lgamma(lost + 1.0) - std::lgamma(gained + 1.0) -
                   std::lgamma(rest + 1.0) + lost * std::log(kLost) + gained * std::log(kGained) +
                   rest * std::log(1 - kLost - kGained));
      if (chance < 1e-9) continue;
      const auto evidence = PairedProportions({kPairs, lost, gained});
      total += chance;
      covered_lower += chance * (evidence->Lower(0.05) <= kLost - kGained);
      covered_upper += chance * (evidence->Upper(0.05) >= kLost - kGained);
    }
  }
  EXPECT_NEAR(total, 1, 1e-5);
  EXPECT_NEAR(covered_lower, 0.95, 0.02);
  EXPECT_NEAR(covered_upper, 0.95, 0.02);
}

}  // namespace
}  // namespace evald

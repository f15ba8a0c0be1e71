// Metrics of several samples, against counting all sets of samples.
#include "metrics/scoring/sample_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/scorer.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

double Value(const std::string& entry, const std::vector<double>& values,
             const std::vector<Json>& answers = {}) {
  return ValueOf(*ParseSampleMetric(entry), {values, answers});
}

TEST(SampleMetrics, EntriesAreReadWhole) {
  const auto metric = ParseSampleMetric("exact_match:pass^4");
  ASSERT_TRUE(metric);
  EXPECT_EQ(metric->kind, SampleMetric::Kind::kPassAll);
  EXPECT_EQ(metric->k, 4);
  EXPECT_EQ(metric->of, "exact_match");
  for (const char* wrong : {"", "avg", "avg@", "avg@0", "avg@-1", "avg@8x", "avg@ 8", "mean@8",
                            ":avg@8", "pass4", "pass@99999999999999999999"})
    EXPECT_FALSE(ParseSampleMetric(wrong)) << wrong;
  EXPECT_EQ(NameOf(*metric, "exact_match"), "exact_match_pass^4");
  EXPECT_EQ(MetricOfSamples("exact_match_pass^4"), "exact_match");
  EXPECT_EQ(MetricOfSamples("pass@1_avg@8"), "pass@1");
  for (const char* other : {"exact_match", "pass@1", "acc_norm", "a_b:avg@8"})
    EXPECT_EQ(MetricOfSamples(other), "") << other;
  EXPECT_EQ(SamplesNeeded({"avg@3", "exact_match:pass@7", "maj@2"}), 7);
}

// The share of all sets of k samples that have a right one, and of those that have no other.
TEST(SampleMetrics, PassIsTheMeanOverAllSets) {
  constexpr unsigned kSamples = 7;
  for (unsigned right = 0; right < 1u << kSamples; ++right) {
    std::vector<double> values;
    for (unsigned i = 0; i < kSamples; ++i) values.push_back(right >> i & 1);
    for (int k = 1; k <= static_cast<int>(kSamples); ++k) {
      double sets = 0, any = 0, all = 0;
      for (unsigned set = 0; set < 1u << kSamples; ++set) {
        if (std::popcount(set) != k) continue;
        ++sets;
        any += (set & right) != 0 ? 1 : 0;
        all += (set & right) == set ? 1 : 0;
      }
      EXPECT_NEAR(Value("pass@" + std::to_string(k), values), any / sets, 1e-12);
      EXPECT_NEAR(Value("pass^" + std::to_string(k), values), all / sets, 1e-12);
    }
  }
}

TEST(SampleMetrics, TheFirstSamplesAreAveragedAndVote) {
  EXPECT_EQ(Value("avg@4", {1, 0, 0.5, 0.5, 1}), 0.5);
  const std::vector<Json> answers = {"7", "8", "8", "7", "8"};
  const std::vector<double> values = {1, 0, 0, 1, 0};
  EXPECT_EQ(Value("maj@1", values, answers), 1);
  EXPECT_EQ(Value("maj@3", values, answers), 0);
  EXPECT_EQ(Value("maj@4", values, answers), 1) << "of equally frequent answers the first";
  EXPECT_EQ(Value("maj@5", values, answers), 0);
  EXPECT_THAT(RefusalOf([] { Value("pass@1", {0.5, 1}); }),
              HasSubstr("the value 0.5, expected 0 or 1"));
}

TaskDefinition Sampled(std::vector<std::string> entries, int repeats = 4) {
  TaskDefinition task = test::AnswerTask();
  task.sample_metrics = std::move(entries);
  task.repeats = repeats;
  return task;
}

TEST(SampleMetrics, EachSampleIsScoredAsIfItWereTheOnlyOne) {
  const TaskDefinition task = Sampled({"avg@4", "pass@2", "maj@3", "exact_match:pass^2"});
  const Scorer scorer(task, nullptr);
  PreparedDocument document;
  document.target = "#### 7";
  std::vector<Generation> answers;
  const char* texts[] = {"#### 7", "so 7 it is", "#### 8", "#### 7"};
  for (int i = 0; i < 4; ++i) answers.push_back(test::Answer(0, texts[i], i));
  const ScoredDocument score = scorer.Score(document, answers);
  const Json& strict = score.filters.at(0).metrics;  // right, no match, wrong, right
  EXPECT_EQ(strict["exact_match"], 1.0);
  EXPECT_EQ(strict["exact_match_avg@4"], 0.5);
  EXPECT_NEAR(strict["exact_match_pass@2"].get<double>(), 5.0 / 6, 1e-12);
  EXPECT_NEAR(strict["exact_match_pass^2"].get<double>(), 1.0 / 6, 1e-12);
  EXPECT_EQ(strict["exact_match_maj@3"], 1.0) << "three answers, each once";
  EXPECT_EQ(score.filters.at(1).metrics["exact_match_avg@4"], 0.75);

  std::vector<std::string> names;
  for (const auto& [metric, filter] : scorer.Metrics())
    if (filter == "strict") names.push_back(metric);
  EXPECT_EQ(names,
            (std::vector<std::string>{"exact_match", "exact_match_avg@4", "exact_match_pass@2",
                                      "exact_match_maj@3", "exact_match_pass^2"}));
  const Json entry = AggregateTask(task, {score, score}, 0);
  EXPECT_EQ(entry["exact_match_avg@4,strict"], 0.5);
}

TEST(SampleMetrics, ATaskIsRefusedIfItsSamplesCannotBeScoredApart) {
  const auto refusal = [](const TaskDefinition& task) {
    return RefusalOf([&] { const Scorer scorer(task, nullptr); });
  };
  EXPECT_THAT(refusal(Sampled({"exact_mach:avg@4"})),
              HasSubstr("no metric 'exact_mach'; did you mean 'exact_match'?"));
  EXPECT_THAT(refusal(Sampled({"avg@5"})), HasSubstr("found 'avg@5' with 4 samples"));
  TaskDefinition voting = Sampled({"avg@4"});
  voting.filters[1].steps.insert(voting.filters[1].steps.begin(),
                                 FilterStep{"majority_vote", Json::object()});
  EXPECT_THAT(refusal(voting), HasSubstr("'flexible' has majority_vote"));
  voting.filters[1].steps[0] = {"!function /t/utils.F", Json::object()};
  voting.sources["code"] = Json::object();  // its functions may run
  EXPECT_THAT(refusal(voting), HasSubstr("'flexible' has the function '/t/utils.F'"));
}

}  // namespace
}  // namespace evald

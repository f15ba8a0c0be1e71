// The tables of metrics and aggregations agree with each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "evald/error.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/metrics.h"

namespace evald {
namespace {

using ::testing::Contains;

bool IsServed(const Metric& metric) {
  return std::any_of(OutputTypes().begin(), OutputTypes().end(),
                     [&](const OutputType& type) { return type.serves(metric); });
}

TEST(MetricTable, NamesAreUnique) {
  std::set<std::string> names;
  for (const Metric* metric : Metrics()) EXPECT_TRUE(names.insert(metric->name).second);
}

TEST(MetricTable, TheDefaultAggregationOfAServedMetricIsServedAndTakesItsValues) {
  for (const Metric* metric : Metrics()) {
    const std::string aggregation = metric->aggregation;
    if (!IsServed(*metric) || aggregation.empty()) continue;
    EXPECT_THAT(AggregationNames(), Contains(aggregation)) << metric->name;
    if (metric->name == std::string("likelihood")) continue;  // its mean fails in the harness, too
    for (const OutputType& type : OutputTypes()) {
      if (!type.serves(*metric)) continue;
      const bool passes_on = metric->text && type.gives(*metric) == ValueForm::kTexts;
      if (passes_on && !TakesTexts(aggregation)) continue;  // it fails in the harness, too
      EXPECT_NO_THROW(CheckAggregates(aggregation, metric->name, type.gives(*metric)));
    }
  }
}

TEST(AggregationTable, AFunctionOfATasksOwnIsNone) {
  EXPECT_EQ(OwnAggregation("!function /t/utils.f"), "/t/utils.f");
  EXPECT_EQ(OwnAggregation("mean"), "");
  EXPECT_THROW(CheckAggregation("!function /t/utils.f"), Error);
}

TEST(MetricTable, DefaultMetricsAreServedForTheirOutputType) {
  for (const OutputType& type : OutputTypes()) {
    const std::vector<MetricSpec> specs = DefaultMetrics(type.name);
    EXPECT_EQ(specs.size(), type.default_metrics.size());
    for (const MetricSpec& spec : specs)
      EXPECT_EQ(ServedMetric(spec, type).name, spec.metric) << type.name;
  }
}

TEST(MetricTable, ARuleIsWhole) {
  for (const Metric* metric : Metrics()) {
    if (metric->text) {
      EXPECT_NE(metric->text->make != nullptr, metric->text->compares_math) << metric->name;
    }
    EXPECT_TRUE(!metric->rolling || metric->rolling->length != nullptr) << metric->name;
    if (metric->choice) {
      EXPECT_EQ(metric->choice->score == nullptr, metric->choice->gives == ValueForm::kNothing)
          << metric->name;
    }
    if (metric->likelihood) {
      EXPECT_EQ(metric->likelihood->score == nullptr,
                metric->likelihood->gives == ValueForm::kNothing)
          << metric->name;
    }
  }
}

TEST(MetricTable, AValueBelongsToTheMetricThatGivesIt) {
  MetricSpec spec;
  spec.metric = "pass_at_k";
  EXPECT_TRUE(GivesValue(spec, "pass@8"));
  EXPECT_FALSE(GivesValue(spec, "pass_at_1"));
  spec.metric = "acc";
  EXPECT_TRUE(GivesValue(spec, "acc"));
  EXPECT_FALSE(GivesValue(spec, "acc_norm"));
}

}  // namespace
}  // namespace evald

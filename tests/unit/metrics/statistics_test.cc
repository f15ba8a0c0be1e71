#include "metrics/scoring/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/score_number.h"
#include "python/random.h"

namespace evald {
namespace {

// The harness's median: sorted(x)[n // 2].
double SortedMedian(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(Median, AndItsStandardErrorAreThoseOfSortedSamples) {
  PythonRandom random(7);
  for (const size_t count : {1u, 2u, 3u, 10u, 101u, 1000u}) {
    for (const int distinct : {1, 2, 5, 1 << 20}) {
      std::vector<double> numbers;
      std::vector<Json> values;
      for (size_t i = 0; i < count; ++i) {
        numbers.push_back(static_cast<double>(random.RandRange(-distinct, distinct)) / 3);
        values.emplace_back(numbers.back());
      }
      if (count > 100) {
        numbers[3] = -std::numeric_limits<double>::infinity();
        values[3] = "-inf";
      }
      MetricValues pointers;
      for (const Json& value : values) pointers.push_back(&value);
      const Aggregated found = Aggregate("median", pointers, 2000);
      EXPECT_EQ(found.value, NumberToScore(SortedMedian(numbers)));
      EXPECT_EQ(Aggregate("median", pointers, 0).value, found.value);
      if (count == 1) continue;
      const double expected = BootstrapStderr(
          [&](const std::vector<size_t>& items) {
            std::vector<double> drawn;
            for (const size_t i : items) drawn.push_back(numbers[i]);
            return SortedMedian(drawn);
          },
          count, 2000);
      EXPECT_EQ(found.stderr_, NumberToScore(expected)) << count << " " << distinct;
    }
  }
}

// Python's sorted([1, 0.5, 1.0, 2])[2] is 1.0, and sorted([1.0, 0.5, 1, 2])[2] is 1.
TEST(Median, OfWholeNumbersIsAWholeNumber) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[0, 1, 0]", "0"},
      {"[3, 1, 2, 9007199254740993]", "3"},
      {"[9007199254740993]", "9007199254740993"},
      {"[1, 0.5, 1.0, 2]", "1.0"},
      {"[1.0, 0.5, 1, 2]", "1"},
      {"[true, true]", "1.0"}};
  for (const auto& [given, expected] : cases) {
    const Json values = Json::parse(given);
    MetricValues pointers;
    for (const Json& value : values) pointers.push_back(&value);
    EXPECT_EQ(Aggregate("median", pointers, 0).value.dump(), expected) << given;
    EXPECT_EQ(Aggregate("median", pointers, 100).value.dump(), expected) << given;
  }
}

TEST(Bootstrap, EndsSoonAfterItIsStopped) {
  std::atomic<int> samples{0};
  const auto statistic = [&](const std::vector<size_t>&) { return static_cast<double>(++samples); };
  EXPECT_THROW(BootstrapStderr(statistic, 10, 1'000'000, [&] { return samples >= 100; }), Error);
  EXPECT_LE(samples, 100 + static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(Bootstrap, DrawsAreCountedForEachMetricAndFilterThatIsBootstrapped) {
  TaskDefinition task;
  for (const char* aggregation : {"mean", "median", "f1", "weighted_perplexity"}) {
    MetricSpec spec;
    spec.metric = aggregation;
    spec.aggregation = aggregation;
    task.metrics.push_back(spec);
  }
  task.filters = {{"a", {}}, {"b", {}}, {"c", {}}};
  EXPECT_EQ(BootstrapDraws(task, 200'000, 100'000), 2.0 * 3 * 200'000 * 100'000);
  EXPECT_EQ(BootstrapDraws(task, 200'000, 0), 0);
}

}  // namespace
}  // namespace evald

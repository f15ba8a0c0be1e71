#include "metrics/scoring/aggregation.h"

#include <fmt/format.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/scoring/score_number.h"
#include "metrics/scoring/statistics.h"

namespace evald {
namespace {

std::vector<double> Pick(const std::vector<double>& values, const std::vector<size_t>& items) {
  std::vector<double> picked(items.size());
  for (size_t i = 0; i < items.size(); ++i) picked[i] = values[items[i]];
  return picked;
}

std::vector<size_t> AllOf(size_t count) {
  std::vector<size_t> items(count);
  for (size_t i = 0; i < count; ++i) items[i] = i;
  return items;
}

}  // namespace

std::vector<double> NumbersOf(const MetricValues& values) {
  std::vector<double> numbers;
  numbers.reserve(values.size());
  for (const Json* value : values) numbers.push_back(NumberFromScore(*value));
  return numbers;
}

NumberPairs PairsOf(const MetricValues& values) {
  NumberPairs pairs;
  for (const Json* value : values) {
    if (!value->is_array() || value->size() != 2) {
      throw Error(ErrorKind::kInput,
                  fmt::format("found {}, expected a pair of numbers", ToLine(*value)));
    }
    pairs.first.push_back(NumberFromScore((*value)[0]));
    pairs.second.push_back(NumberFromScore((*value)[1]));
  }
  return pairs;
}

Aggregated Bootstrapped(const Statistic& statistic, size_t count, const Draws& draws) {
  Aggregated result{NumberToScore(statistic(AllOf(count))), kNoStderr};
  if (count > 1 && draws.iterations > 1) {
    result.stderr_ =
        NumberToScore(BootstrapStderr(statistic, count, draws.iterations, draws.stopped));
  }
  return result;
}

Aggregated BootstrappedNumbers(const MetricValues& values, const Draws& draws,
                               double (*statistic)(const std::vector<double>&)) {
  const std::vector<double> numbers = NumbersOf(values);
  return Bootstrapped(
      [&](const std::vector<size_t>& items) { return statistic(Pick(numbers, items)); },
      numbers.size(), draws);
}

}  // namespace evald

// The aggregations mean, nanmean and median.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "metrics/scoring/aggregation.h"
#include "metrics/scoring/score_number.h"
#include "metrics/scoring/statistics.h"
#include "python/numpy.h"

namespace evald {
namespace {

Aggregated AggregateMean(const MetricValues& values, const Draws& draws) {
  const std::vector<double> numbers = NumbersOf(values);
  Aggregated result{NumberToScore(Mean(numbers)), kNoStderr};
  if (numbers.size() > 1 && draws.iterations > 0)
    result.stderr_ = NumberToScore(MeanStderr(numbers));
  return result;
}

// The harness's sorted(x)[n // 2], for numbers without NaN.
double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Medians of samples, counted by rank: a sample takes time in proportion to its size.
class Medians {
 public:
  explicit Medians(const std::vector<double>& values) : distinct_(values) {
    std::sort(distinct_.begin(), distinct_.end());
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
    ranks_.reserve(values.size());
    for (const double value : values) {
      const auto rank = std::lower_bound(distinct_.begin(), distinct_.end(), value);
      ranks_.push_back(static_cast<uint32_t>(rank - distinct_.begin()));
    }
  }

  double operator()(const std::vector<size_t>& items) const {
    thread_local std::vector<uint32_t> counts;
    counts.assign(distinct_.size(), 0);
    for (const size_t i : items) ++counts[ranks_[i]];
    size_t rank = 0;
    for (size_t before = counts[0]; before <= items.size() / 2; before += counts[rank]) ++rank;
    return distinct_[rank];
  }

 private:
  std::vector<double> distinct_;  // ascending
  std::vector<uint32_t> ranks_;   // the rank of each value in distinct_
};

double NanMean(const std::vector<double>& values) {
  std::vector<double> present;
  size_t count = 0;
  for (const double value : values) {
    const bool is_nan = std::isnan(value);
    present.push_back(is_nan ? 0.0 : value);  // np.nanmean sums zeros in place of NaN
    if (!is_nan) ++count;
  }
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  return PairwiseSum(present.data(), present.size()) / static_cast<double>(count);
}

// A whole number stays one, as in the harness. Of equal values Python's sort keeps the order, so
// that 1 and 1.0 differ.
Json MedianAsGiven(const MetricValues& values, const std::vector<double>& numbers) {
  const double median = Median(numbers);
  const auto below = static_cast<size_t>(
      std::count_if(numbers.begin(), numbers.end(), [&](double one) { return one < median; }));
  size_t equals_before = numbers.size() / 2 - below;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != median || equals_before-- > 0) continue;
    return values[i]->is_number_integer() ? *values[i] : NumberToScore(median);
  }
  return NumberToScore(median);
}

Aggregated AggregateMedian(const MetricValues& values, const Draws& draws) {
  const std::vector<double> numbers = NumbersOf(values);
  // Where Python's sort leaves NaN depends on the order of the values: a median of them says
  // nothing.
  if (std::any_of(numbers.begin(), numbers.end(), [](double one) { return std::isnan(one); }))
    return {NumberToScore(std::numeric_limits<double>::quiet_NaN()), kNoStderr};
  Aggregated result{MedianAsGiven(values, numbers), kNoStderr};
  if (draws.iterations > 1)
    result.stderr_ = Bootstrapped(Medians(numbers), numbers.size(), draws).stderr_;
  return result;
}

}  // namespace

extern constinit const Aggregation kMeanAggregation = {.name = "mean", .aggregate = AggregateMean};
extern constinit const Aggregation kNanMeanAggregation = {
    .name = "nanmean",
    .bootstraps = true,
    .aggregate = [](const MetricValues& values, const Draws& draws) {
      return BootstrappedNumbers(values, draws, NanMean);
    }};
extern constinit const Aggregation kMedianAggregation = {
    .name = "median", .bootstraps = true, .aggregate = AggregateMedian};

}  // namespace evald

// perplexity, word_perplexity, byte_perplexity and bits_per_byte, and the aggregations perplexity,
// weighted_perplexity and bits_per_byte.
#include <cmath>
#include <numbers>

#include "evald/error.h"
#include "metrics/scoring/metric.h"
#include "metrics/scoring/score_number.h"
#include "metrics/scoring/statistics.h"
#include "python/regex.h"

namespace evald {
namespace {

// len(re.split(r"\s+", text))
int64_t PiecesBetweenSpace(const std::string& text) {
  static const PythonRegex kSpace("\\s+");
  int64_t pieces = 1;
  kSpace.ForEachMatch(text, [&](const Regex::Match&) {
    ++pieces;
    return true;
  });
  return pieces;
}

int64_t BytesOf(const std::string& text) { return static_cast<int64_t>(text.size()); }

// weighted_mean: the sum of the first values over the sum of the second.
double WeightedMean(const NumberPairs& pairs) {
  double weighted = 0;
  double weights = 0;
  for (const double value : pairs.first) weighted += value;
  for (const double value : pairs.second) weights += value;
  if (weights == 0)
    throw Error(ErrorKind::kInput, "the texts are empty: there is nothing to divide by");
  return weighted / weights;
}

double ExpOfMinusMean(const std::vector<double>& values) { return std::exp(-Mean(values)); }

}  // namespace

extern constinit const Metric kPerplexityMetric = {
    .name = "perplexity",
    .aggregation = "perplexity",
    .higher_is_better = false,
    .likelihood =
        LikelihoodRule{.score = [](const Json& loglikelihood, bool) { return loglikelihood; }}};
extern constinit const Metric kWordPerplexityMetric = {
    .name = "word_perplexity",
    .aggregation = "weighted_perplexity",
    .higher_is_better = false,
    .rolling = RollingRule{.length = PiecesBetweenSpace}};
extern constinit const Metric kBytePerplexityMetric = {.name = "byte_perplexity",
                                                       .aggregation = "weighted_perplexity",
                                                       .higher_is_better = false,
                                                       .rolling = RollingRule{.length = BytesOf}};
extern constinit const Metric kBitsPerByteMetric = {.name = "bits_per_byte",
                                                    .aggregation = "bits_per_byte",
                                                    .higher_is_better = false,
                                                    .rolling = RollingRule{.length = BytesOf}};

extern constinit const Aggregation kPerplexityAggregation = {
    .name = "perplexity",
    .bootstraps = true,
    .aggregate = [](const MetricValues& values, const Draws& draws) {
      return BootstrappedNumbers(values, draws, ExpOfMinusMean);
    }};
extern constinit const Aggregation kWeightedPerplexityAggregation = {
    .name = "weighted_perplexity",
    .takes = ValueForm::kPair,
    .aggregate = [](const MetricValues& values, const Draws&) {
      return Aggregated{NumberToScore(std::exp(-WeightedMean(PairsOf(values)))), kNoStderr};
    }};
extern constinit const Aggregation kBitsPerByteAggregation = {
    .name = "bits_per_byte",
    .takes = ValueForm::kPair,
    .aggregate = [](const MetricValues& values, const Draws&) {
      return Aggregated{NumberToScore(-WeightedMean(PairsOf(values)) / std::numbers::ln2),
                        kNoStderr};
    }};

}  // namespace evald

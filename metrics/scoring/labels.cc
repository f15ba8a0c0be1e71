// f1 and mcc: pairs of the gold and the predicted label, and their aggregations f1 and
// matthews_corrcoef.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "evald/error.h"
#include "metrics/scoring/metric.h"

namespace evald {
namespace {

Json GoldAndPredicted(const ChoiceAnswer& answer) {
  return Json::array({answer.Gold(), answer.Predicted()});
}

// Gold and predicted labels of the pairs, as numbers.
struct Labels {
  std::vector<size_t> gold;
  std::vector<size_t> predicted;
  std::vector<double> names;  // label number -> label, ascending
};

Labels LabelsOf(const NumberPairs& pairs) {
  std::set<double> names(pairs.first.begin(), pairs.first.end());
  names.insert(pairs.second.begin(), pairs.second.end());
  Labels labels;
  labels.names.assign(names.begin(), names.end());
  const auto number = [&](double name) {
    return static_cast<size_t>(std::lower_bound(labels.names.begin(), labels.names.end(), name) -
                               labels.names.begin());
  };
  for (const double name : pairs.first) labels.gold.push_back(number(name));
  for (const double name : pairs.second) labels.predicted.push_back(number(name));
  return labels;
}

// Checks the task's labels only: a model that predicts a third label is wrong, which is no error.
void CheckBinary(const NumberPairs& pairs) {
  const std::set<double> names(pairs.first.begin(), pairs.first.end());
  if (names.size() > 2 || (names.size() == 2 && names.count(1.0) == 0)) {
    throw Error(ErrorKind::kInput, fmt::format("f1 takes two labels of which one is 1, found {}",
                                               fmt::join(names, ", ")));
  }
}

// f1_score(average="binary"): 2 tp / (gold ones + predicted ones); 0 for 0 / 0.
double F1(const Labels& labels, const std::vector<size_t>& items) {
  double hits = 0, gold = 0, predicted = 0;
  for (const size_t i : items) {
    const bool is_gold = labels.names[labels.gold[i]] == 1;
    const bool is_predicted = labels.names[labels.predicted[i]] == 1;
    gold += is_gold ? 1 : 0;
    predicted += is_predicted ? 1 : 0;
    hits += is_gold && is_predicted ? 1 : 0;
  }
  const double denominator = gold + predicted;
  return denominator == 0 ? 0.0 : 2 * hits / denominator;
}

double Matthews(const Labels& labels, const std::vector<size_t>& items) {
  std::vector<double> gold(labels.names.size()), predicted(labels.names.size());
  double correct = 0;
  for (const size_t i : items) {
    gold[labels.gold[i]] += 1;
    predicted[labels.predicted[i]] += 1;
    if (labels.gold[i] == labels.predicted[i]) correct += 1;
  }
  const auto count = static_cast<double>(items.size());
  double both = 0, squared_gold = 0, squared_predicted = 0;
  for (size_t label = 0; label < gold.size(); ++label) {
    both += gold[label] * predicted[label];
    squared_gold += gold[label] * gold[label];
    squared_predicted += predicted[label] * predicted[label];
  }
  const double variances = (count * count - squared_predicted) * (count * count - squared_gold);
  return variances == 0 ? 0.0 : (correct * count - both) / std::sqrt(variances);
}

Aggregated AggregateLabels(const MetricValues& values, const Draws& draws,
                           double (*statistic)(const Labels&, const std::vector<size_t>&)) {
  const NumberPairs pairs = PairsOf(values);
  if (statistic == F1) CheckBinary(pairs);
  const Labels labels = LabelsOf(pairs);
  return Bootstrapped([&](const std::vector<size_t>& items) { return statistic(labels, items); },
                      values.size(), draws);
}

}  // namespace

extern constinit const Metric kF1Metric = {
    .name = "f1",
    .aggregation = "f1",
    .text = kTargetAndAnswer,
    .choice = ChoiceRule{.gives = ValueForm::kPair, .score = GoldAndPredicted}};
extern constinit const Metric kMccMetric = {
    .name = "mcc",
    .aggregation = "matthews_corrcoef",
    .text = kTargetAndAnswer,
    .choice = ChoiceRule{.gives = ValueForm::kPair, .score = GoldAndPredicted}};

extern constinit const Aggregation kF1Aggregation = {
    .name = "f1",
    .takes = ValueForm::kPair,
    .bootstraps = true,
    .aggregate = [](const MetricValues& values, const Draws& draws) {
      return AggregateLabels(values, draws, F1);
    }};
extern constinit const Aggregation kMatthewsAggregation = {
    .name = "matthews_corrcoef",
    .takes = ValueForm::kPair,
    .bootstraps = true,
    .aggregate = [](const MetricValues& values, const Draws& draws) {
      return AggregateLabels(values, draws, Matthews);
    }};

}  // namespace evald

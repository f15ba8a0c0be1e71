#include "metrics/aggregations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <set>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task.h"
#include "metrics/numpy.h"
#include "metrics/statistics.h"

namespace evald {
namespace {

constexpr const char* kNotAvailable = "N/A";

std::vector<double> Numbers(const MetricValues& values) {
  std::vector<double> numbers;
  numbers.reserve(values.size());
  for (const Json* value : values) numbers.push_back(NumberFromScore(*value));
  return numbers;
}

struct Pairs {
  std::vector<double> first;
  std::vector<double> second;
};

Pairs PairsOf(const MetricValues& values) {
  Pairs pairs;
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

// weighted_mean: the sum of the first over the sum of the second.
double WeightedMean(const Pairs& pairs) {
  double weighted = 0;
  double weights = 0;
  for (const double value : pairs.first) weighted += value;
  for (const double value : pairs.second) weights += value;
  if (weights == 0)
    throw Error(ErrorKind::kInput, "the texts are empty: there is nothing to divide by");
  return weighted / weights;
}

// An order with NaN, which comes last.
bool Before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The harness's sorted(x)[n // 2].
double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end(), Before);
  return *middle;
}

// The same of samples, counted by rank: a sample takes time in proportion to its size.
class Medians {
 public:
  explicit Medians(const std::vector<double>& values) : distinct_(values) {
    std::sort(distinct_.begin(), distinct_.end(), Before);
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end(),
                                [](double a, double b) { return !Before(a, b); }),
                    distinct_.end());
    ranks_.reserve(values.size());
    for (const double value : values) {
      const auto rank = std::lower_bound(distinct_.begin(), distinct_.end(), value, Before);
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
  std::vector<uint32_t> ranks_;   // of each value, in distinct_
};

double NanMean(const std::vector<double>& values) {
  std::vector<double> present;
  size_t count = 0;
  for (const double value : values) {
    const bool is_nan = std::isnan(value);
    present.push_back(is_nan ? 0.0 : value);  // np.nanmean sums zeros in their place
    if (!is_nan) ++count;
  }
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  return PairwiseSum(present.data(), present.size()) / static_cast<double>(count);
}

// A pair's gold and predicted label, counted.
struct Labels {
  std::vector<size_t> gold;
  std::vector<size_t> predicted;
  std::vector<double> names;  // label number -> label, ascending
};

Labels LabelsOf(const Pairs& pairs) {
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

// Of the task's labels alone: a model that predicts a third one is wrong, and no error.
void CheckBinary(const Pairs& pairs) {
  const std::set<double> names(pairs.first.begin(), pairs.first.end());
  if (names.size() > 2 || (names.size() == 2 && names.count(1.0) == 0)) {
    throw Error(ErrorKind::kInput, fmt::format("f1 takes two labels of which one is 1, found {}",
                                               fmt::join(names, ", ")));
  }
}

// f1_score(average="binary"): 2 tp / (gold ones + predicted ones), 0 where that is 0 / 0.
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

// np.mean(np.sum((probabilities - one_hot(gold)) ** 2, axis=1))
double Brier(const MetricValues& values) {
  std::vector<double> distances;
  size_t classes = 0;
  for (const Json* value : values) {
    if (!value->is_array() || value->size() != 2 || !(*value)[1].is_array()) {
      throw Error(ErrorKind::kInput, "brier_score takes pairs of a label and probabilities");
    }
    std::vector<double> probabilities;
    for (const Json& p : (*value)[1]) probabilities.push_back(NumberFromScore(p));
    if (distances.empty()) classes = probabilities.size();
    double gold = NumberFromScore((*value)[0]);
    if (gold < 0) gold += static_cast<double>(classes);  // a Python index
    if (probabilities.size() != classes || gold < 0 || gold >= static_cast<double>(classes)) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("brier_score needs the same number of choices for every document and "
                      "a label among them; found {} choices and label {}, expected {} choices",
                      probabilities.size(), ToLine((*value)[0]), classes));
    }
    for (size_t i = 0; i < classes; ++i) {
      const double off = probabilities[i] - (i == static_cast<size_t>(gold) ? 1.0 : 0.0);
      probabilities[i] = off * off;
    }
    distances.push_back(PairwiseSum(probabilities.data(), classes));
  }
  return PairwiseSum(distances.data(), distances.size()) / static_cast<double>(distances.size());
}

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

// A statistic of numbers whose standard error is bootstrapped.
using Statistic = std::function<double(const std::vector<size_t>&)>;

// How often it is drawn, and who may stop that.
struct Draws {
  int iterations = 0;
  const std::function<bool()>& stopped;
};

Aggregated Bootstrapped(const Statistic& statistic, size_t count, const Draws& draws) {
  Aggregated result{NumberToScore(statistic(AllOf(count))), kNotAvailable};
  if (count > 1 && draws.iterations > 1) {
    result.stderr_ =
        NumberToScore(BootstrapStderr(statistic, count, draws.iterations, draws.stopped));
  }
  return result;
}

Aggregated BootstrappedNumbers(const MetricValues& values, const Draws& draws,
                               double (*statistic)(const std::vector<double>&)) {
  const std::vector<double> numbers = Numbers(values);
  return Bootstrapped(
      [&](const std::vector<size_t>& items) { return statistic(Pick(numbers, items)); },
      numbers.size(), draws);
}

using Aggregator = Aggregated (*)(const MetricValues& values, const Draws& draws);

Aggregated AggregateMean(const MetricValues& values, const Draws& draws) {
  const std::vector<double> numbers = Numbers(values);
  Aggregated result{NumberToScore(Mean(numbers)), kNotAvailable};
  if (numbers.size() > 1 && draws.iterations > 0)
    result.stderr_ = NumberToScore(MeanStderr(numbers));
  return result;
}

Aggregated AggregateLabels(const MetricValues& values, const Draws& draws,
                           double (*statistic)(const Labels&, const std::vector<size_t>&)) {
  const Pairs pairs = PairsOf(values);
  if (statistic == F1) CheckBinary(pairs);
  const Labels labels = LabelsOf(pairs);
  return Bootstrapped([&](const std::vector<size_t>& items) { return statistic(labels, items); },
                      values.size(), draws);
}

struct Known {
  const char* name;
  Aggregator aggregate;
  bool bootstraps = false;
};

const Known kKnown[] = {
    {"mean", AggregateMean},
    {"nanmean",
     [](const MetricValues& values, const Draws& draws) {
       return BootstrappedNumbers(values, draws, NanMean);
     },
     true},
    {"median",
     [](const MetricValues& values, const Draws& draws) {
       const std::vector<double> numbers = Numbers(values);
       if (draws.iterations < 2) return Aggregated{NumberToScore(Median(numbers)), kNotAvailable};
       return Bootstrapped(Medians(numbers), numbers.size(), draws);
     },
     true},
    {"perplexity",
     [](const MetricValues& values, const Draws& draws) {
       return BootstrappedNumbers(values, draws,
                                  [](const std::vector<double>& v) { return std::exp(-Mean(v)); });
     },
     true},
    {"weighted_perplexity",
     [](const MetricValues& values, const Draws&) {
       return Aggregated{NumberToScore(std::exp(-WeightedMean(PairsOf(values)))), kNotAvailable};
     }},
    {"bits_per_byte",
     [](const MetricValues& values, const Draws&) {
       return Aggregated{NumberToScore(-WeightedMean(PairsOf(values)) / std::numbers::ln2),
                         kNotAvailable};
     }},
    {"f1",
     [](const MetricValues& values, const Draws& draws) {
       return AggregateLabels(values, draws, F1);
     },
     true},
    {"matthews_corrcoef",
     [](const MetricValues& values, const Draws& draws) {
       return AggregateLabels(values, draws, Matthews);
     },
     true},
    {"brier_score",
     [](const MetricValues& values, const Draws&) {
       return Aggregated{NumberToScore(Brier(values)), kNotAvailable};
     }},
    {"bypass", [](const MetricValues&, const Draws&) { return Aggregated{999, kNotAvailable}; }},
};

}  // namespace

const std::vector<std::string>& AggregationNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Known& known : kKnown) list.emplace_back(known.name);
    return list;
  }();
  return names;
}

void CheckAggregation(const std::string& name) {
  for (const Known& known : kKnown) {
    if (name == known.name) return;
  }
  for (const char* unserved : {"bleu", "chrf", "chrf++", "ter"}) {
    if (name == unserved) {
      throw Error(ErrorKind::kInput, fmt::format("the aggregation '{}' is not served", name),
                  "served are " + Join(AggregationNames(), ", "));
    }
  }
  constexpr std::string_view kTag = "!function ";
  if (name.starts_with(kTag)) {
    RefuseFunction("", name.substr(kTag.size()), "is not known as an aggregation",
                   AggregationNames(), "Python code of tasks is not run; served are ");
  }
  throw Error(ErrorKind::kInput,
              fmt::format("the aggregation '{}' is not known{}", name,
                          Suggestion(name, AggregationNames())),
              "served are " + Join(AggregationNames(), ", "));
}

void CheckAggregates(const std::string& name, const std::string& metric,
                     const std::string& output_type) {
  if (name == "bypass" || metric == "bypass") return;
  const bool choice = output_type == "multiple_choice";
  const auto is_one_of = [](const std::string& text, std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), text) != names.end();
  };
  const char* given = "a number";
  if (output_type == "loglikelihood_rolling" || (choice && is_one_of(metric, {"f1", "mcc"})))
    given = "a pair of numbers";
  if (choice && is_one_of(metric, {"brier_score", "likelihood"}))
    given = "a label and a list of numbers";
  const char* taken = "a number";
  if (is_one_of(name, {"weighted_perplexity", "bits_per_byte", "f1", "matthews_corrcoef"}))
    taken = "a pair of numbers";
  if (name == "brier_score") taken = "a label and a list of numbers";
  if (std::string_view(given) == taken) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("the metric '{}' gives {} for each document, and the aggregation '{}' takes {}",
                  metric, given, name, taken),
      "name another aggregation, or leave out the metric");
}

Aggregated Aggregate(const std::string& name, const MetricValues& values, int bootstrap_iters,
                     const std::function<bool()>& stopped) {
  CheckAggregation(name);
  if (values.empty()) throw Error(ErrorKind::kInternal, "nothing to aggregate");
  for (const Known& known : kKnown) {
    if (name == known.name) return known.aggregate(values, {bootstrap_iters, stopped});
  }
  throw Error(ErrorKind::kInternal, "an aggregation that is and is not known");
}

bool IsBootstrapped(const std::string& name) {
  return std::any_of(std::begin(kKnown), std::end(kKnown),
                     [&](const Known& known) { return known.bootstraps && name == known.name; });
}

double NumberFromScore(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw Error(ErrorKind::kInput, fmt::format("found {}, expected a number", ToLine(value)));
}

Json NumberToScore(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

}  // namespace evald

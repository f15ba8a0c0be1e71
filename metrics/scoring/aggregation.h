#pragma once

#include <functional>
#include <vector>

#include "evald/json.h"

// An aggregation, as its file describes it. aggregations.cc has the table of all.
namespace evald {

/// The form of a metric's value for one document.
enum class ValueForm {
  kNumber,
  kPair,             ///< two numbers, such as (gold, prediction)
  kLabelAndNumbers,  ///< the gold label, and a number for each choice
  kTexts,            ///< the reference or references, and the answer
  kNothing,          ///< of a metric: no value, or null; every aggregation is accepted
  kAnything,         ///< of an aggregation: the values do not matter
};

/// One metric's values over the documents of a task, as in a scores file.
using MetricValues = std::vector<const Json*>;

/// An aggregate and its standard error.
struct Aggregated {
  Json value;    ///< a number
  Json stderr_;  ///< a number, or kNoStderr
};

inline constexpr const char* kNoStderr = "N/A";

/// How often a bootstrapped standard error draws, and the callback that stops the draws. The
/// callback may be null.
struct Draws {
  int iterations = 0;
  const std::function<bool()>& stopped;
};

/// An aggregation with its standard error, as in lm_eval 0.4.13 (api/metrics.py).
struct Aggregation {
  const char* name;  ///< in the harness's spelling
  ValueForm takes = ValueForm::kNumber;
  bool bootstraps = false;  ///< the standard error takes draws
  /// For at least one value. Null: the aggregation is known, and not served. Throws Error(kInput)
  /// for values that the aggregation cannot take.
  Aggregated (*aggregate)(const MetricValues& values, const Draws& draws) = nullptr;
};

// For files of aggregations.

std::vector<double> NumbersOf(const MetricValues& values);

struct NumberPairs {
  std::vector<double> first;
  std::vector<double> second;
};
NumberPairs PairsOf(const MetricValues& values);

/// Gets the positions of the drawn values. Called from several threads at once.
using Statistic = std::function<double(const std::vector<size_t>&)>;

/// The statistic of all `count` values, with a bootstrapped standard error.
Aggregated Bootstrapped(const Statistic& statistic, size_t count, const Draws& draws);

/// The same for a statistic of numbers.
Aggregated BootstrappedNumbers(const MetricValues& values, const Draws& draws,
                               double (*statistic)(const std::vector<double>&));

}  // namespace evald

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// One metric's values over the documents of a task, as a scores file holds them: numbers, pairs
/// such as (gold, prediction), or null.
using MetricValues = std::vector<const Json*>;

/// An aggregation and its standard error.
struct Aggregated {
  Json value;    ///< a number
  Json stderr_;  ///< a number, or "N/A"
};

/// The names that Aggregate knows, in the harness's spelling.
const std::vector<std::string>& AggregationNames();

/// Throws Error(kInput) that names the nearest known aggregation, and says of a known one that is
/// not served (bleu, chrf, ter) that it is not.
void CheckAggregation(const std::string& name);

/// Throws Error(kInput) where what the metric gives for a document of the output type can never be
/// aggregated by `name`, which CheckAggregation knows: a mean takes numbers, and `likelihood` gives
/// a label and a list.
void CheckAggregates(const std::string& name, const std::string& metric,
                     const std::string& output_type);

/// Applies the aggregation `name` of lm_eval 0.4.13 (api/metrics.py; f1 and matthews_corrcoef as
/// scikit-learn 1.9) to at least one value. A standard error is "N/A" for one value, for
/// `bootstrap_iters` 0 and where the harness has none. Throws Error(kInput) for values that the
/// aggregation cannot take, and Error(kInfrastructure) soon after `stopped` has begun to be true
/// (it may be null, and is asked from several threads).
Aggregated Aggregate(const std::string& name, const MetricValues& values, int bootstrap_iters,
                     const std::function<bool()>& stopped = nullptr);

/// Whether the aggregation's standard error is bootstrapped. False for one that is not known.
bool IsBootstrapped(const std::string& name);

/// A number as scores files write it: also "-inf", "inf" and "nan", which JSON has not.
double NumberFromScore(const Json& value);
Json NumberToScore(double value);

}  // namespace evald

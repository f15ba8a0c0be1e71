#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/scoring/aggregation.h"

namespace evald {

/// The names that Aggregate knows, in the harness's spelling.
const std::vector<std::string>& AggregationNames();

/// The function of an aggregation that a task defines itself, "!function <folder>/utils.name"; ""
/// for any other name.
std::string OwnAggregation(std::string_view name);

/// Throws Error(kInput) for an unknown aggregation, with the nearest known one, for a known one
/// that is not served, and for a function of the task's own.
void CheckAggregation(const std::string& name);

/// Throws Error(kInput) if `name`, which CheckAggregation accepts, can never aggregate what the
/// metric gives for each document. For example, a mean takes numbers, and `likelihood` gives a
/// label and a list.
void CheckAggregates(const std::string& name, const std::string& metric, ValueForm given);

/// Applies the aggregation `name` of lm_eval 0.4.13 (api/metrics.py; f1 and matthews_corrcoef as in
/// scikit-learn 1.9) to at least one value. The standard error is "N/A" for one value, for
/// `bootstrap_iters` 0, and if the harness has none. Throws Error(kInput) for values that the
/// aggregation cannot take, and Error(kInfrastructure) soon after `stopped` has become true (it may
/// be null, and is called from several threads).
Aggregated Aggregate(const std::string& name, const MetricValues& values, int bootstrap_iters,
                     const std::function<bool()>& stopped = nullptr);

/// Whether the aggregation takes texts, not numbers. False for an unknown aggregation.
bool TakesTexts(const std::string& name);

/// Whether the aggregation takes a number of each document. False for an unknown aggregation.
bool TakesNumbers(const std::string& name);

/// Whether the aggregation's standard error is bootstrapped. False for an unknown aggregation.
bool IsBootstrapped(const std::string& name);

}  // namespace evald

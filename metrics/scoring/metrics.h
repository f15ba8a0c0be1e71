#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evald/generation.h"
#include "metrics/scoring/metric.h"

namespace evald {

/// An output type of tasks, and how a metric's rule for it is found.
struct OutputType {
  const char* name;
  RequestKind kind;  ///< of its requests
  /// The metrics of a task without metric_list (lm_eval/api/registry.py, DEFAULT_METRIC_REGISTRY).
  std::vector<const char*> default_metrics;
  bool (*serves)(const Metric&);
  ValueForm (*gives)(const Metric&);  ///< for a metric that the output type serves
};

const std::vector<OutputType>& OutputTypes();
std::vector<std::string> OutputTypeNames();

/// Throws Error(kInput) for an unknown output type, with the nearest known one.
const OutputType& OutputTypeOf(std::string_view name);

/// All metrics, in the order in which the harness computes those of multiple_choice, loglikelihood
/// and loglikelihood_rolling.
const std::vector<const Metric*>& Metrics();

/// The names of the metrics that a task file may name by a text.
std::vector<std::string> MetricNames();

/// Null for an unknown metric.
const Metric* FindMetric(std::string_view name);

/// The metric of an entry of metric_list. Throws Error(kInput) for a metric or function that is
/// unknown, or not served for the output type, with the nearest known one.
const Metric& ServedMetric(const MetricSpec& spec, const OutputType& type);

/// The metrics of a task without metric_list.
std::vector<MetricSpec> DefaultMetrics(std::string_view output_type);

/// Whether a metric of a multiple_choice task needs each choice's log-likelihood without the
/// context, too.
bool NeedsUnconditional(const std::vector<MetricSpec>& metrics);

/// Whether a task of these compares answers of mathematics by value, for which a Python with
/// math-verify is needed.
bool ComparesMath(std::string_view output_type, const std::string& process_results,
                  const std::vector<MetricSpec>& metrics);

/// Whether results of the name `value` come from this entry of metric_list: "pass@8" from
/// pass_at_k.
bool GivesValue(const MetricSpec& spec, std::string_view value);

}  // namespace evald

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evald/task.h"

namespace evald {

/// How a metric is aggregated when a task does not say (lm_eval/api/metrics.py, 0.4.13).
struct MetricDefault {
  const char* metric;
  const char* aggregation;
  bool higher_is_better;
};

/// Null for a metric that is not known.
const MetricDefault* FindMetricDefault(std::string_view metric);

/// The metrics of a task without metric_list (lm_eval/api/registry.py, DEFAULT_METRIC_REGISTRY).
std::vector<MetricSpec> DefaultMetrics(std::string_view output_type);

}  // namespace evald

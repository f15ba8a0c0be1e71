#pragma once

#include <functional>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "metrics/math_comparer.h"
#include "metrics/scoring/metric.h"

namespace evald {

/// Adds the metric's value to `metrics`. An answer that is not compared is no equal one, and counts
/// in `fallbacks`.
using MathScorer =
    std::function<void(const TextAnswer& answer, Json* metrics, Fallbacks* fallbacks)>;

/// The metric math_verify (docs/metrics.md). `comparer` is null if nothing will be scored. Throws
/// Error(kInput) for arguments that the metric does not take.
MathScorer MakeMathMetric(const MetricSpec& spec, MathComparer* comparer);

}  // namespace evald

// math_verify: whether the answer has the value of the gold answer, by the package math-verify,
// which runs in a process of its own (metrics/math_metric.h).
#include "metrics/scoring/metric.h"

namespace evald {

extern constinit const Metric kMathVerifyMetric = {
    .name = "math_verify",
    .aggregation = "mean",
    .text = TextRule{.compares_math = true},
};

}  // namespace evald

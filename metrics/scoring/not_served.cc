// Metrics of lm_eval 0.4.13 that are known and not served.
#include "metrics/scoring/metric.h"

namespace evald {

extern constinit const Metric kAccAllMetric = {.name = "acc_all", .aggregation = "mean"};

}  // namespace evald

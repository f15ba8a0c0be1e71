// Metrics and aggregations of lm_eval 0.4.13 that are known and not served.
#include "metrics/scoring/metric.h"

namespace evald {

extern constinit const Metric kAccAllMetric = {.name = "acc_all", .aggregation = "mean"};
extern constinit const Metric kBleuMetric = {.name = "bleu", .aggregation = "bleu"};
extern constinit const Metric kChrfMetric = {.name = "chrf", .aggregation = "chrf"};
extern constinit const Metric kChrfPlusPlusMetric = {.name = "chrf++", .aggregation = "chrf++"};
extern constinit const Metric kTerMetric = {
    .name = "ter", .aggregation = "ter", .higher_is_better = false};

extern constinit const Aggregation kBleuAggregation = {.name = "bleu"};
extern constinit const Aggregation kChrfAggregation = {.name = "chrf"};
extern constinit const Aggregation kChrfPlusPlusAggregation = {.name = "chrf++"};
extern constinit const Aggregation kTerAggregation = {.name = "ter"};

}  // namespace evald

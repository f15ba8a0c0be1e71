// The score that a judge gives, another model (metrics/judge/). A task's file says what is asked;
// score_generation.cc asks.
#include "evald/error.h"
#include "metrics/scoring/metric.h"

namespace evald {

extern constinit const Metric kJudgeMetric = {
    .name = kJudgeName,
    .function = kJudgeFunction,
    .aggregation = "mean",
    .text =
        TextRule{.make = [](const TaskDefinition&, const MetricSpec&, CodeRunner*) -> TextScorer {
          throw Error(ErrorKind::kInternal, "a judge's score has no rule of its own");
        }},
};

}  // namespace evald

// bypass: nothing is scored.
#include "metrics/scoring/metric.h"

namespace evald {

extern constinit const Metric kBypassMetric = {
    .name = "bypass",
    .aggregation = "bypass",
    .text =
        TextRule{.gives = ValueForm::kNothing,
                 .scores_nothing = true,
                 .make = [](const TaskDefinition&, const MetricSpec&, CodeRunner*) -> TextScorer {
                   return [](const TextAnswer&, Json* metrics, Json*) {
                     (*metrics)["bypass"] = nullptr;
                   };
                 }},
    .choice = ChoiceRule{.gives = ValueForm::kNothing},
    .likelihood = LikelihoodRule{.gives = ValueForm::kNothing},
};

extern constinit const Aggregation kBypassAggregation = {
    .name = "bypass",
    .takes = ValueForm::kAnything,
    .aggregate = [](const MetricValues&, const Draws&) { return Aggregated{999, kNoStderr}; }};

}  // namespace evald

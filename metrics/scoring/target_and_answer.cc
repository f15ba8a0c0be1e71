// The rule kTargetAndAnswer.
#include <fmt/format.h>

#include "evald/error.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/metric.h"

namespace evald {

TextScorer MakeTargetAndAnswer(const TaskDefinition& task, const MetricSpec& spec, CodeRunner*) {
  if (task.multiple_target && OwnAggregation(spec.aggregation).empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("the metric '{}' takes one target for each document", spec.metric),
                "give a process_results function that returns the list of targets");
  }
  if (task.multiple_target) {  // the harness's own value: whether there is any pair
    return [name = spec.metric](const TextAnswer& answer, Json* metrics, Json*) {
      (*metrics)[name] = answer.gold.empty() ? 0.0 : 1.0;
    };
  }
  return [name = spec.metric](const TextAnswer& answer, Json* metrics, Json*) {
    (*metrics)[name] = Json::array({answer.gold, answer.result});
  };
}

}  // namespace evald

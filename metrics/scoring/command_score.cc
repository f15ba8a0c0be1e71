// The scores that a program of the user's gave: the answer is {"accuracy": 0.5, ...}.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/metric.h"
#include "metrics/scoring/score_number.h"

namespace evald {
namespace {

void TakeScore(const TextAnswer& answer, const std::string& name, Json* metrics) {
  Json scores;
  try {
    if (answer.result.is_string())
      scores = ParseJson(answer.result.get_ref<const std::string&>(), "the scores");
  } catch (const Error&) {
  }
  const auto found = scores.is_object() ? scores.find(name) : scores.end();
  if (found == scores.end() || !found->is_number())
    throw AnswerError("no score", fmt::format("the answer has no score '{}'", name));
  (*metrics)[name] = NumberToScore(found->get<double>());
}

}  // namespace

extern constinit const Metric kCommandScoreMetric = {
    .name = "command_score",
    .function = kCommandMetric,
    .aggregation = "mean",
    .text = TextRule{.make = [](const TaskDefinition&, const MetricSpec& spec,
                                CodeRunner*) -> TextScorer {
      return [name = spec.metric](const TextAnswer& answer, Json* metrics, Json*) {
        TakeScore(answer, name, metrics);
      };
    }},
};

}  // namespace evald

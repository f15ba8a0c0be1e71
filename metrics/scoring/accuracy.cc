// acc, acc_norm, acc_bytes and acc_mutual_info: whether the most likely choice is the gold one.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/metric.h"
#include "python/numpy.h"

namespace evald {
namespace {

Json Rightness(const ChoiceAnswer& answer, const std::vector<double>& merits) {
  return answer.gold.Holds(ArgMax(merits)) ? 1.0 : 0.0;
}

// The log-likelihoods of the choices, each divided by a length of the choice.
template <typename Length>
std::vector<double> PerLength(const ChoiceAnswer& answer, Length length) {
  std::vector<double> result(answer.choices.size());
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = answer.loglikelihoods[i] / static_cast<double>(length(answer.choices[i]));
  }
  return result;
}

Json Acc(const ChoiceAnswer& answer) { return Rightness(answer, answer.loglikelihoods); }

Json AccNorm(const ChoiceAnswer& answer) {
  return Rightness(answer, PerLength(answer, [](const std::string& c) { return CodePoints(c); }));
}

Json AccBytes(const ChoiceAnswer& answer) {
  return Rightness(answer, PerLength(answer, [](const std::string& c) { return c.size(); }));
}

Json AccMutualInfo(const ChoiceAnswer& answer) {
  std::vector<double> gained(answer.unconditional.size());
  for (size_t i = 0; i < gained.size(); ++i) {
    gained[i] = answer.loglikelihoods[i] - answer.unconditional[i];
  }
  return Rightness(answer, gained);
}

void CheckOneLabel(const PreparedDocument& document, const GoldLabels& gold, size_t) {
  if (gold.labels.size() == 1) return;
  throw Error(ErrorKind::kInput,
              fmt::format("found the target {}, expected one label: acc_mutual_info cannot compare "
                          "with several or none, and the harness fails there too",
                          ToLine(document.target)),
              "give each document one label, or leave acc_mutual_info out of metric_list");
}

}  // namespace

extern constinit const Metric kAccMetric = {
    .name = "acc",
    .aggregation = "mean",
    .text = kTargetAndAnswer,
    .choice = ChoiceRule{.score = Acc},
    // whether the continuation is the greedy one
    .likelihood =
        LikelihoodRule{.score = [](const Json&, bool greedy) -> Json { return greedy ? 1 : 0; }},
};
extern constinit const Metric kAccNormMetric = {.name = "acc_norm",
                                                .aggregation = "mean",
                                                .text = kTargetAndAnswer,
                                                .choice = ChoiceRule{.score = AccNorm}};
extern constinit const Metric kAccBytesMetric = {.name = "acc_bytes",
                                                 .aggregation = "mean",
                                                 .text = kTargetAndAnswer,
                                                 .choice = ChoiceRule{.score = AccBytes}};
extern constinit const Metric kAccMutualInfoMetric = {
    .name = "acc_mutual_info",
    .aggregation = "mean",
    .choice = ChoiceRule{.unconditional = true, .check = CheckOneLabel, .score = AccMutualInfo}};

}  // namespace evald

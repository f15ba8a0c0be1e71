// brier_score and likelihood: the gold label and a number for each choice; the aggregation
// brier_score.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/scoring/metric.h"
#include "metrics/scoring/score_number.h"
#include "python/numpy.h"

namespace evald {
namespace {

// np.mean(np.sum((probabilities - one_hot(gold)) ** 2, axis=1))
double Brier(const MetricValues& values) {
  std::vector<double> distances;
  size_t classes = 0;
  for (const Json* value : values) {
    if (!value->is_array() || value->size() != 2 || !(*value)[1].is_array()) {
      throw Error(ErrorKind::kInput, "brier_score takes pairs of a label and probabilities");
    }
    std::vector<double> probabilities;
    for (const Json& p : (*value)[1]) probabilities.push_back(NumberFromScore(p));
    if (distances.empty()) classes = probabilities.size();
    double gold = NumberFromScore((*value)[0]);
    if (gold < 0) gold += static_cast<double>(classes);  // a Python index
    if (probabilities.size() != classes || gold < 0 || gold >= static_cast<double>(classes)) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("brier_score needs the same number of choices for every document and "
                      "a label among them; found {} choices and label {}, expected {} choices",
                      probabilities.size(), ToLine((*value)[0]), classes));
    }
    for (size_t i = 0; i < classes; ++i) {
      const double off = probabilities[i] - (i == static_cast<size_t>(gold) ? 1.0 : 0.0);
      probabilities[i] = off * off;
    }
    distances.push_back(PairwiseSum(probabilities.data(), classes));
  }
  return PairwiseSum(distances.data(), distances.size()) / static_cast<double>(distances.size());
}

}  // namespace

extern constinit const Metric kBrierScoreMetric = {
    .name = "brier_score",
    .aggregation = "brier_score",
    .higher_is_better = false,
    .choice = ChoiceRule{
        .gives = ValueForm::kLabelAndNumbers, .score = [](const ChoiceAnswer& answer) {
          return Json::array({answer.Gold(), ScoreNumbers(Softmax(answer.loglikelihoods))});
        }}};
extern constinit const Metric kLikelihoodMetric = {
    .name = "likelihood",
    .aggregation = "mean",
    .choice =
        ChoiceRule{.gives = ValueForm::kLabelAndNumbers, .score = [](const ChoiceAnswer& answer) {
                     return Json::array({answer.Gold(), ScoreNumbers(answer.loglikelihoods)});
                   }}};

extern constinit const Aggregation kBrierScoreAggregation = {
    .name = "brier_score",
    .takes = ValueForm::kLabelAndNumbers,
    .aggregate = [](const MetricValues& values, const Draws&) {
      return Aggregated{NumberToScore(Brier(values)), kNoStderr};
    }};

}  // namespace evald

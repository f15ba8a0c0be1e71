// process_results of the tasks truthfulqa_mc2 and agieval (those with choices).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/score_number.h"
#include "metrics/scoring/task_results.h"
#include "python/numpy.h"
#include "python/value.h"

namespace evald {
namespace {

constexpr const char* kChoiceDocument = "the document";

// The probability of the choices with the label 1, of that of all. numpy's own vectorised exp may
// differ from the C library's in the last bit, depending on the machine on which numpy runs.
Json ScoreMc2(const Json& doc, const std::vector<Json>& results) {
  std::vector<double> probabilities = LikelihoodsOf(results);
  for (double& one : probabilities) one = std::exp(one);
  const Json labels =
      Field<Json>(Field<Json>(doc, "mc2_targets", kChoiceDocument), "labels", "mc2_targets");
  if (!labels.is_array() || labels.size() != probabilities.size()) {
    throw Error(ErrorKind::kInput,
                fmt::format("mc2_targets.labels is {}, expected a label for each of {} choices",
                            Shortened(ToLine(labels), 200), probabilities.size()));
  }
  const double sum = PairwiseSum(probabilities.data(), probabilities.size());
  std::vector<double> right;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (PythonEquals(labels[i], 1)) right.push_back(probabilities[i] / sum);
  }
  return {{"acc", NumberToScore(PairwiseSum(right.data(), right.size()))}};
}

// Whether `label in gold` of Python, for a list of labels.
bool IsAmong(const Json& gold, size_t label) {
  return std::any_of(gold.begin(), gold.end(), [&](const Json& one) {
    return PythonEquals(one, static_cast<int64_t>(label));
  });
}

// There may be several right choices. acc_norm divides by the characters of a choice.
Json ScoreAgievalChoice(const Json& doc, const std::vector<Json>& results) {
  std::vector<double> numbers = LikelihoodsOf(results);
  const Json gold = Field<Json>(doc, "gold", kChoiceDocument);
  const auto choices = Field<std::vector<std::string>>(doc, "choices", kChoiceDocument);
  if (!gold.is_array() || choices.size() != numbers.size() || numbers.empty()) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("the document has {} choices, {} of them with a log-likelihood, and the "
                    "gold labels {}; expected as many, and a list of labels",
                    choices.size(), numbers.size(), Shortened(ToLine(gold), 200)));
  }
  const bool right = IsAmong(gold, ArgMax(numbers));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] /= static_cast<double>(CodePoints(choices[i]));
  return {{"acc", right ? 1.0 : 0.0}, {"acc_norm", IsAmong(gold, ArgMax(numbers)) ? 1.0 : 0.0}};
}

}  // namespace

extern constinit const TaskResults kTruthfulqaMc2Results = {"truthfulqa/utils.process_results_mc2",
                                                            ScoreMc2};
extern constinit const TaskResults kAgievalChoiceResults = {"agieval/utils.process_results_mcqa",
                                                            ScoreAgievalChoice};

}  // namespace evald

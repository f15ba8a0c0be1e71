// process_results of the output type multiple_choice.
#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/process_results.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/score_number.h"

namespace evald {
namespace {

// The responses to one document's choices.
struct Responses {
  std::vector<double> loglikelihoods;
  std::vector<bool> greedy;
};

Responses ReadResponses(const std::vector<Json>& filtered) {
  Responses responses;
  for (const Json& response : filtered) {
    if (!response.is_array() || response.size() != 2 || !response[1].is_boolean()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("found {}, expected a log-likelihood and whether it "
                              "is greedy",
                              ToLine(response)));
    }
    responses.loglikelihoods.push_back(NumberFromScore(response[0]));
    responses.greedy.push_back(response[1].get<bool>());
  }
  return responses;
}

int64_t Label(const Json& gold, const std::vector<std::string>& choices) {
  if (gold.is_boolean()) return gold.get<bool>() ? 1 : 0;
  if (gold.is_number_integer()) {
    const auto label = gold.get<int64_t>();
    return label < static_cast<int64_t>(choices.size()) ? label : GoldLabels::kOutOfRange;
  }
  if (gold.is_string()) {
    const auto found = std::find(choices.begin(), choices.end(), gold.get<std::string>());
    return found == choices.end() ? GoldLabels::kOutOfRange : found - choices.begin();
  }
  throw Error(
      ErrorKind::kInput,
      fmt::format("found the target {}, expected a label or one of the choices", ToLine(gold)));
}

GoldLabels ReadGold(const Json& target, const std::vector<std::string>& choices) {
  if (!target.is_array()) return {{Label(target, choices)}, false};
  GoldLabels gold;
  gold.several = true;
  for (const Json& item : target) {
    if (item.is_string()) {
      throw Error(ErrorKind::kInput,
                  "several targets of a multiple choice must be labels, not text");
    }
    gold.labels.push_back(Label(item, choices));
  }
  return gold;
}

class MultipleChoice : public ProcessResults {
 public:
  explicit MultipleChoice(const TaskDefinition& task)
      : several_(task.multiple_target),
        several_contexts_(task.multiple_input),
        unconditional_(NeedsUnconditional(task.metrics)),
        used_(UsedMetricsOf(task)) {}

  std::vector<std::string> Metrics() const override { return used_.names; }

  void Check(const PreparedDocument& document) const override {
    const std::vector<std::string> choices = ReadChoices(document);
    const GoldLabels gold = GoldOf(document, choices);
    for (const Metric* metric : used_.in_order) {
      if (metric->choice->check != nullptr) metric->choice->check(document, gold, choices.size());
    }
  }

  size_t Requests(const PreparedDocument& document) const override {
    return ReadChoices(document).size() * (unconditional_ ? 2 : 1);
  }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json*) const override {
    const auto choices = ReadChoices(document);
    Responses responses = ReadResponses(filtered);
    if (filtered.size() != Requests(document)) {
      throw Error(ErrorKind::kInput, fmt::format("found {} responses, expected {} for the choices",
                                                 filtered.size(), Requests(document)));
    }
    const auto middle = responses.loglikelihoods.begin() + static_cast<int64_t>(choices.size());
    const std::vector<double> unconditional(middle, responses.loglikelihoods.end());
    responses.loglikelihoods.erase(middle, responses.loglikelihoods.end());
    const GoldLabels gold = GoldOf(document, choices);
    const ChoiceAnswer answer{document,         choices,      gold, responses.loglikelihoods,
                              responses.greedy, unconditional};
    Json values = Json::object();
    for (const Metric* metric : used_.in_order)
      values[metric->name] = metric->choice->score(answer);
    return values;
  }

 private:
  GoldLabels GoldOf(const PreparedDocument& document,
                    const std::vector<std::string>& choices) const {
    if (several_contexts_) return ReadGold(document.label, choices);
    GoldLabels gold = ReadGold(document.target, choices);
    if (gold.several != several_) {
      throw Error(ErrorKind::kInput,
                  fmt::format("found the target {}, expected {} as in the first document",
                              ToLine(document.target), several_ ? "a list" : "one label"));
    }
    return gold;
  }

  static std::vector<std::string> ReadChoices(const PreparedDocument& document) {
    std::vector<std::string> choices;
    if (document.choices.is_array()) {
      for (const Json& choice : document.choices) {
        if (choice.is_string()) choices.push_back(choice.get<std::string>());
      }
    }
    if (choices.empty() || choices.size() != document.choices.size()) {
      throw Error(ErrorKind::kInput, fmt::format("doc_to_choice gives {}, expected a list of texts",
                                                 ToLine(document.choices)));
    }
    return choices;
  }

  bool several_;           // targets
  bool several_contexts_;  // for one continuation
  bool unconditional_;
  UsedMetrics used_;
};

}  // namespace

std::unique_ptr<ProcessResults> MakeMultipleChoiceResults(const TaskDefinition& task) {
  return std::make_unique<MultipleChoice>(task);
}

}  // namespace evald

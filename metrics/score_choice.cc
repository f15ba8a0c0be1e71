// process_results of the output type multiple_choice.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/aggregations.h"
#include "metrics/numpy.h"
#include "metrics/process_results.h"

namespace evald {
namespace {

constexpr int64_t kOutOfRange = -100;  // the harness's mark for a label that is no choice

const std::vector<std::string>& Served() {
  static const std::vector<std::string> names = {
      "acc",         "f1",          "mcc",        "acc_norm",        "acc_bytes",
      "exact_match", "brier_score", "likelihood", "acc_mutual_info", "bypass"};
  return names;
}

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

// A label or several.
struct Gold {
  std::vector<int64_t> labels;
  bool several = false;

  bool Holds(size_t predicted) const {
    return std::count(labels.begin(), labels.end(), static_cast<int64_t>(predicted)) > 0;
  }
};

int64_t Label(const Json& gold, const std::vector<std::string>& choices) {
  if (gold.is_boolean()) return gold.get<bool>() ? 1 : 0;
  if (gold.is_number_integer()) {
    const auto label = gold.get<int64_t>();
    return label < static_cast<int64_t>(choices.size()) ? label : kOutOfRange;
  }
  if (gold.is_string()) {
    const auto found = std::find(choices.begin(), choices.end(), gold.get<std::string>());
    return found == choices.end() ? kOutOfRange : found - choices.begin();
  }
  throw Error(
      ErrorKind::kInput,
      fmt::format("found the target {}, expected a label or one of the choices", ToLine(gold)));
}

Gold ReadGold(const Json& target, const std::vector<std::string>& choices) {
  if (!target.is_array()) return {{Label(target, choices)}, false};
  Gold gold;
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

std::vector<double> Divided(const std::vector<double>& values, const std::vector<double>& by) {
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = values[i] / by[i];
  return result;
}

class MultipleChoice : public ProcessResults {
 public:
  explicit MultipleChoice(const TaskDefinition& task) : several_(task.multiple_target) {
    for (const MetricSpec& spec : task.metrics) {
      if (std::find(Served().begin(), Served().end(), spec.metric) == Served().end()) {
        RefuseMetric(spec.metric, task.output_type, Served());
      }
      metrics_.push_back(spec.metric);
    }
    if (task.multiple_input) {
      throw Error(
          ErrorKind::kInput,
          "doc_to_text gives a label (several contexts for one continuation), which is not served");
    }
  }

  // No value is given to bypass.
  std::vector<std::string> Metrics() const override {
    std::vector<std::string> names = metrics_;
    std::erase(names, "bypass");
    return names;
  }

  void Check(const PreparedDocument& document) const override {
    const std::vector<std::string> choices = ReadChoices(document);
    const Gold gold = GoldOf(document, choices);
    const auto lowest = -static_cast<int64_t>(choices.size());
    for (const int64_t label : gold.labels) {
      if (Uses("exact_match") && label != kOutOfRange && label < lowest) {
        throw Error(ErrorKind::kInput, fmt::format("the label {} is out of range", label));
      }
    }
  }

  size_t Requests(const PreparedDocument& document) const override {
    return ReadChoices(document).size() * (Uses("acc_mutual_info") ? 2 : 1);
  }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json*) const override {
    const auto choices = ReadChoices(document);
    Responses responses = ReadResponses(filtered);
    std::vector<double> unconditional;
    if (filtered.size() != Requests(document)) {
      throw Error(ErrorKind::kInput, fmt::format("found {} responses, expected {} for the choices",
                                                 filtered.size(), Requests(document)));
    }
    if (Uses("acc_mutual_info")) {
      const auto middle = responses.loglikelihoods.begin() + static_cast<int64_t>(choices.size());
      unconditional.assign(middle, responses.loglikelihoods.end());
      responses.loglikelihoods.erase(middle, responses.loglikelihoods.end());
    }
    const Gold gold = GoldOf(document, choices);
    Json metrics = Metrics(document, choices, responses, gold);
    if (Uses("acc_mutual_info")) {
      std::vector<double> gained(unconditional.size());
      for (size_t i = 0; i < gained.size(); ++i) {
        gained[i] = responses.loglikelihoods[i] - unconditional[i];
      }
      metrics["acc_mutual_info"] = !gold.several && gold.Holds(ArgMax(gained)) ? 1.0 : 0.0;
    }
    return metrics;
  }

 private:
  bool Uses(const char* metric) const {
    return std::find(metrics_.begin(), metrics_.end(), metric) != metrics_.end();
  }

  Gold GoldOf(const PreparedDocument& document, const std::vector<std::string>& choices) const {
    Gold gold = ReadGold(document.target, choices);
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

  Json Metrics(const PreparedDocument& document, const std::vector<std::string>& choices,
               const Responses& responses, const Gold& gold) const {
    std::vector<double> characters, bytes;
    for (const std::string& choice : choices) {
      characters.push_back(static_cast<double>(CodePoints(choice)));
      bytes.push_back(static_cast<double>(choice.size()));
    }
    const std::vector<double>& lls = responses.loglikelihoods;
    const size_t predicted = ArgMax(lls);
    const Json pair_gold = gold.several ? document.target : Json(gold.labels[0]);
    Json metrics = Json::object();
    if (Uses("acc")) metrics["acc"] = gold.Holds(predicted) ? 1.0 : 0.0;
    if (Uses("f1")) metrics["f1"] = {pair_gold, predicted};
    if (Uses("mcc")) metrics["mcc"] = {pair_gold, predicted};
    if (Uses("acc_norm")) {
      metrics["acc_norm"] = gold.Holds(ArgMax(Divided(lls, characters))) ? 1.0 : 0.0;
    }
    if (Uses("acc_bytes")) {
      metrics["acc_bytes"] = gold.Holds(ArgMax(Divided(lls, bytes))) ? 1.0 : 0.0;
    }
    if (Uses("exact_match")) metrics["exact_match"] = ExactMatchOf(responses, gold);
    if (Uses("brier_score")) metrics["brier_score"] = {pair_gold, Numbers(Softmax(lls))};
    if (Uses("likelihood")) metrics["likelihood"] = {pair_gold, Numbers(lls)};
    return metrics;
  }

  // Whether the gold continuation is the greedy one. A negative label counts from the end.
  static int ExactMatchOf(const Responses& responses, const Gold& gold) {
    const auto count = static_cast<int64_t>(responses.greedy.size());
    for (const int64_t label : gold.labels) {
      if (label == kOutOfRange) continue;
      const int64_t index = label < 0 ? label + count : label;
      if (index < 0) {
        throw Error(ErrorKind::kInput, fmt::format("the label {} is out of range", label));
      }
      if (responses.greedy[static_cast<size_t>(index)]) return 1;
    }
    return 0;
  }

  static Json Numbers(const std::vector<double>& values) {
    Json list = Json::array();
    for (const double value : values) list.push_back(NumberToScore(value));
    return list;
  }

  std::vector<std::string> metrics_;
  bool several_;
};

}  // namespace

std::unique_ptr<ProcessResults> MakeMultipleChoiceResults(const TaskDefinition& task) {
  return std::make_unique<MultipleChoice>(task);
}

}  // namespace evald

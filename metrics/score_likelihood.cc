// process_results of the output types loglikelihood and loglikelihood_rolling.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/process_results.h"

namespace evald {
namespace {

const Json& OneResponse(const std::vector<Json>& filtered) {
  if (filtered.size() != 1) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("found {} responses, expected 1 request per document", filtered.size()));
  }
  return filtered[0];
}

class LikelihoodScores : public ProcessResults {
 public:
  explicit LikelihoodScores(const TaskDefinition& task) : used_(UsedMetricsOf(task)) {}

  std::vector<std::string> Metrics() const override { return used_.names; }

  Json Run(const PreparedDocument&, const std::vector<Json>& filtered, Json*) const override {
    const Json& response = OneResponse(filtered);
    if (!response.is_array() || response.size() != 2 || !response[1].is_boolean()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("found {}, expected a log-likelihood and whether it is greedy",
                              ToLine(response)));
    }
    Json values = Json::object();
    for (const Metric* metric : used_.in_order)
      values[metric->name] = metric->likelihood->score(response[0], response[1].get<bool>());
    return values;
  }

 private:
  UsedMetrics used_;
};

class RollingResults : public ProcessResults {
 public:
  explicit RollingResults(const TaskDefinition& task) : used_(UsedMetricsOf(task)) {}

  std::vector<std::string> Metrics() const override { return used_.names; }

  void Check(const PreparedDocument& document) const override {
    if (document.target.is_string()) return;
    throw Error(ErrorKind::kInput, "doc_to_target of a rolling log-likelihood must give text");
  }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json*) const override {
    const Json& loglikelihood = OneResponse(filtered);
    Check(document);
    const std::string& text = document.target.get_ref<const std::string&>();
    Json values = Json::object();
    for (const Metric* metric : used_.in_order)
      values[metric->name] = Json::array({loglikelihood, metric->rolling->length(text)});
    return values;
  }

 private:
  UsedMetrics used_;
};

}  // namespace

std::unique_ptr<ProcessResults> MakeLikelihoodResults(const TaskDefinition& task) {
  return std::make_unique<LikelihoodScores>(task);
}

std::unique_ptr<ProcessResults> MakeRollingResults(const TaskDefinition& task) {
  return std::make_unique<RollingResults>(task);
}

}  // namespace evald

// process_results of the output types loglikelihood and loglikelihood_rolling.
#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/regex.h"
#include "evald/error.h"
#include "jinja/python_value.h"
#include "metrics/process_results.h"

namespace evald {
namespace {

std::vector<std::string> MetricNames(const TaskDefinition& task,
                                     const std::vector<std::string>& served) {
  std::vector<std::string> names;
  for (const MetricSpec& spec : task.metrics) {
    if (std::find(served.begin(), served.end(), spec.metric) == served.end()) {
      RefuseMetric(spec.metric, task.output_type, served);
    }
    names.push_back(spec.metric);
  }
  return names;
}

bool Has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// These output types give bypass no value.
std::vector<std::string> WithoutBypass(std::vector<std::string> names) {
  std::erase(names, "bypass");
  return names;
}

void ExpectOne(const std::vector<Json>& filtered) {
  if (filtered.size() != 1) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("found {} responses, expected 1 request per document", filtered.size()));
  }
}

// perplexity: the log-likelihood; acc: whether the continuation is the greedy one.
class Likelihood : public ProcessResults {
 public:
  explicit Likelihood(const TaskDefinition& task)
      : metrics_(MetricNames(task, {"perplexity", "acc", "bypass"})) {}

  std::vector<std::string> Metrics() const override { return WithoutBypass(metrics_); }

  Json Run(const PreparedDocument&, const std::vector<Json>& filtered, Json*) const override {
    ExpectOne(filtered);
    const Json& result = filtered[0];
    if (!result.is_array() || result.size() != 2 || !result[1].is_boolean()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("found {}, expected a log-likelihood and whether it "
                              "is greedy",
                              ToLine(result)));
    }
    Json metrics = Json::object();
    if (Has(metrics_, "perplexity")) metrics["perplexity"] = result[0];
    if (Has(metrics_, "acc")) metrics["acc"] = result[1].get<bool>() ? 1 : 0;
    return metrics;
  }

 private:
  std::vector<std::string> metrics_;
};

// Pairs of the log-likelihood and the number of words or bytes of the text.
class Rolling : public ProcessResults {
 public:
  explicit Rolling(const TaskDefinition& task)
      : metrics_(MetricNames(task, {"word_perplexity", "byte_perplexity", "bits_per_byte"})) {}

  std::vector<std::string> Metrics() const override { return metrics_; }

  void Check(const PreparedDocument& document) const override {
    if (document.target.is_string()) return;
    throw Error(ErrorKind::kInput, "doc_to_target of a rolling log-likelihood must give text");
  }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json*) const override {
    ExpectOne(filtered);
    Check(document);
    const std::string& text = document.target.get_ref<const std::string&>();
    int64_t words = 1;  // len(re.split(r"\s+", text))
    space_.ForEachMatch(text, [&](const Regex::Match&) {
      ++words;
      return true;
    });
    Json metrics = Json::object();
    if (Has(metrics_, "word_perplexity")) metrics["word_perplexity"] = {filtered[0], words};
    if (Has(metrics_, "byte_perplexity")) metrics["byte_perplexity"] = {filtered[0], text.size()};
    if (Has(metrics_, "bits_per_byte")) metrics["bits_per_byte"] = {filtered[0], text.size()};
    return metrics;
  }

 private:
  std::vector<std::string> metrics_;
  Regex space_{"\\s+"};
};

}  // namespace

std::unique_ptr<ProcessResults> MakeLikelihoodResults(const TaskDefinition& task) {
  return std::make_unique<Likelihood>(task);
}

std::unique_ptr<ProcessResults> MakeRollingResults(const TaskDefinition& task) {
  return std::make_unique<Rolling>(task);
}

}  // namespace evald

// process_results of the output type generate_until.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "jinja/python_value.h"
#include "metrics/code_eval.h"
#include "metrics/exact_match.h"
#include "metrics/filter_support.h"
#include "metrics/process_results.h"

namespace evald {
namespace {

// The gold answer and the filtered response of one document.
struct Answer {
  Json gold;    // a string, or with several targets a list of strings
  Json result;  // mostly a string; a list of strings where no filter chose one
};

// One metric: adds its values to `metrics`.
using Metric = std::function<void(const Answer& answer, Json* metrics, Json* detail)>;

std::vector<std::string> Texts(const Json& value, const char* what) {
  std::vector<std::string> texts;
  for (const Json& item : value.is_array() ? Iterate(value) : std::vector<Json>{value}) {
    if (item.is_null())
      throw AnswerError("no text", fmt::format("{}: found null, expected text", what));
    if (!item.is_string()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: found {}, expected text", what, ToLine(item)));
    }
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

Metric MakeExactMatch(const TaskDefinition& task, const MetricSpec& spec) {
  const auto match = std::make_shared<const ExactMatch>(spec.kwargs);
  if (task.multiple_target) {
    return [match](const Answer& answer, Json* metrics, Json*) {
      const std::vector<std::string> golds = Texts(answer.gold, "exact_match, the target");
      if (golds.empty() || !answer.result.is_string()) {
        throw Error(ErrorKind::kInput,
                    "exact_match with several targets takes one text and at least one target");
      }
      const std::vector<std::string> predictions(golds.size(), answer.result.get<std::string>());
      (*metrics)["exact_match"] = match->Score(predictions, golds) > 0.0 ? 1.0 : 0.0;
    };
  }
  return [match](const Answer& answer, Json* metrics, Json*) {
    if (answer.result.is_array() && !match->plain()) {
      throw Error(ErrorKind::kInput,
                  "exact_match with arguments takes one text, but the filters leave a list",
                  "end the filter pipeline with take_first");
    }
    const std::vector<std::string> predictions = Texts(answer.result, "exact_match");
    if (predictions.empty()) throw AnswerError("no text", "exact_match: the filters leave nothing");
    const std::vector<std::string> golds(predictions.size(),
                                         Texts(answer.gold, "exact_match, the target")[0]);
    (*metrics)["exact_match"] = match->Score(predictions, golds);
  };
}

std::vector<int64_t> ReadK(const MetricSpec& spec) {
  const auto found = spec.kwargs.find("k");
  if (found != spec.kwargs.end() && found->is_number_integer()) {
    return {Field<int64_t>(spec.kwargs, "k", "pass_at_k")};
  }
  return Field<std::vector<int64_t>>(spec.kwargs, "k", "pass_at_k");
}

std::string OneTest(const Answer& answer) {
  if (answer.gold.is_string()) return answer.gold.get<std::string>();
  throw Error(ErrorKind::kInput, fmt::format("the target of a code task must be its test, found {}",
                                             ToLine(answer.gold).substr(0, 200)));
}

Metric MakePassAtK(const MetricSpec& spec, CodeRunner* runner) {
  const std::vector<int64_t> ks = ReadK(spec);
  for (const int64_t k : ks) {
    if (k < 1)
      throw Error(ErrorKind::kInput,
                  fmt::format("pass_at_k: found k = {}, expected at least 1", k));
  }
  return [ks, runner](const Answer& answer, Json* metrics, Json* detail) {
    const CodeEval eval = RunCandidates(runner, Texts(answer.result, "pass_at_k"), OneTest(answer));
    for (const int64_t k : ks) {
      if (eval.total >= k)
        (*metrics)[fmt::format("pass@{}", k)] = PassAtK(eval.total, eval.passed, k);
    }
    *detail = eval.detail;
  };
}

Metric MakePassAt1(CodeRunner* runner) {
  return [runner](const Answer& answer, Json* metrics, Json* detail) {
    const CodeEval eval = RunCandidates(runner, Texts(answer.result, "pass_at_1"), OneTest(answer));
    if (eval.total < 1) throw AnswerError("no text", "pass_at_1: the filters leave no program");
    (*metrics)["pass_at_1"] = PassAtK(eval.total, eval.passed, 1);
    *detail = eval.detail;
  };
}

Metric MakeFunction(const MetricSpec& spec, CodeRunner* runner) {
  static const std::vector<std::string> kFunctions = {"humaneval/utils.pass_at_k",
                                                      "mbpp/utils.pass_at_1"};
  if (spec.function == kFunctions[0]) return MakePassAtK(spec, runner);
  if (spec.function == kFunctions[1]) return MakePassAt1(runner);
  RefuseFunction("", spec.function, "is not known as a metric", kFunctions,
                 "Python code of tasks is not run; served are ");
}

Metric MakeMetric(const TaskDefinition& task, const MetricSpec& spec, CodeRunner* runner) {
  if (!spec.function.empty()) return MakeFunction(spec, runner);
  if (spec.metric == "exact_match") return MakeExactMatch(task, spec);
  if (spec.metric == "bypass") {
    return [](const Answer&, Json* metrics, Json*) { (*metrics)["bypass"] = nullptr; };
  }
  RefuseMetric(spec.metric, task.output_type, {"exact_match", "bypass"});
}

// What the values of a metric are called. No document has more programs than answers.
std::vector<std::string> ValueNames(const TaskDefinition& task, const MetricSpec& spec) {
  if (spec.metric != "pass_at_k" || spec.function.empty()) return {spec.metric};
  std::vector<std::string> names;
  for (const int64_t k : ReadK(spec)) {
    if (k <= task.repeats) names.push_back(fmt::format("pass@{}", k));
  }
  return names;
}

class Generation : public ProcessResults {
 public:
  Generation(const TaskDefinition& task, CodeRunner* runner) : several_(task.multiple_target) {
    for (const MetricSpec& spec : task.metrics) {
      metrics_.push_back(MakeMetric(task, spec, runner));
      for (std::string& name : ValueNames(task, spec)) names_.push_back(std::move(name));
      runs_code_ = runs_code_ || !spec.function.empty();
      if (!spec.function.empty() && several_) {
        throw Error(ErrorKind::kInput,
                    fmt::format("the metric '{}' with several targets is not served", spec.metric));
      }
      bypass_ = bypass_ || spec.metric == "bypass";
    }
  }

  std::vector<std::string> Metrics() const override { return names_; }

  void Check(const PreparedDocument& document) const override {
    if (!document.choices.is_null()) {
      ChoiceText(document);
    } else if (several_ && !bypass_) {
      const Json& target = document.target;
      const std::vector<Json> targets =
          target.is_string() || target.is_array() ? Iterate(target) : std::vector<Json>{target};
      const bool texts = std::all_of(targets.begin(), targets.end(),
                                     [](const Json& one) { return one.is_string(); });
      if (targets.empty() || !texts) RefuseTarget(document, "text or a list of texts");
    } else if (runs_code_ && !document.target.is_string()) {
      RefuseTarget(document, "the text of a test");
    }
  }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json* detail) const override {
    if (filtered.empty()) throw Error(ErrorKind::kInput, "the document has no response");
    if (filtered[0].is_null() && !bypass_)
      throw AnswerError("no text", "the filters leave null, expected text");
    const Answer answer{Gold(document, filtered[0]), filtered[0]};
    Json metrics = Json::object();
    for (const Metric& metric : metrics_) metric(answer, &metrics, detail);
    return metrics;
  }

 private:
  Json Gold(const PreparedDocument& document, const Json& result) const {
    const Json& target = document.target;
    if (!document.choices.is_null()) return ChoiceText(document);
    if (several_) {
      // list(gold): a document with one text instead of a list is taken apart into characters.
      return target.is_string() || target.is_array() ? Json(Iterate(target))
                                                     : Json::array({target});
    }
    if (bypass_ || result.is_array() || target.type() == result.type()) return target;
    if (result.is_string()) return jinja::PythonStr(target);
    throw Error(ErrorKind::kInput,
                fmt::format("the filters leave {}, expected text", ToLine(result)));
  }

  [[noreturn]] static void RefuseTarget(const PreparedDocument& document, const char* expected) {
    throw Error(ErrorKind::kInput, fmt::format("doc_to_target gives {}, expected {}",
                                               ToLine(document.target).substr(0, 200), expected));
  }

  static Json ChoiceText(const PreparedDocument& document) {
    const Json& target = document.target;
    if (!document.choices.is_array() || !target.is_number_integer()) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("doc_to_choice is set, so that doc_to_target must give a label; found {}",
                      ToLine(target)));
    }
    const auto count = static_cast<int64_t>(document.choices.size());
    const auto label =
        target.get<int64_t>() < 0 ? target.get<int64_t>() + count : target.get<int64_t>();
    if (label < 0 || label >= count) {
      throw Error(ErrorKind::kInput, fmt::format("the label {} is out of range", ToLine(target)));
    }
    return document.choices[static_cast<size_t>(label)];
  }

  bool several_;
  bool bypass_ = false;
  bool runs_code_ = false;
  std::vector<Metric> metrics_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<ProcessResults> MakeGenerationResults(const TaskDefinition& task,
                                                      CodeRunner* runner) {
  return std::make_unique<Generation>(task, runner);
}

}  // namespace evald

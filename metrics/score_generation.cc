// process_results of the output type generate_until.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/filter_support.h"
#include "metrics/line_index.h"
#include "metrics/own_metrics.h"
#include "metrics/process_results.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/metrics.h"
#include "python/value.h"

namespace evald {
namespace {

class GenerateUntil : public ProcessResults {
 public:
  GenerateUntil(const TaskDefinition& task, CodeRunner* runner, TaskCode* code)
      : several_(task.multiple_target) {
    const OutputType& type = OutputTypeOf(task.output_type);
    for (const MetricSpec& spec : task.metrics) {
      if (IsOwnMetric(task, spec)) {
        AddOwn(task, spec, code);
        continue;
      }
      const TextRule& rule = *ServedMetric(spec, type).text;
      scorers_.push_back(
          [scorer = rule.make(task, spec, runner)](const TextAnswer& answer, const Outcome& out) {
            scorer(answer, out.metrics, out.detail);
          });
      repeats_answer_.push_back(several_ && spec.metric == "exact_match");
      holds_texts_ = holds_texts_ || rule.gives == ValueForm::kTexts;
      const std::vector<std::string> names = rule.value_names == nullptr
                                                 ? std::vector<std::string>{spec.metric}
                                                 : rule.value_names(task, spec);
      names_.insert(names_.end(), names.begin(), names.end());
      if (rule.runs_code && several_) {
        throw Error(ErrorKind::kInput,
                    fmt::format("the metric '{}' with several targets is not served", spec.metric));
      }
      runs_code_ = runs_code_ || (rule.runs_code && rule.check == nullptr);
      takes_any_ = takes_any_ || rule.scores_nothing;
      rules_.emplace_back(&rule, spec);
    }
  }

  std::vector<std::string> Metrics() const override { return names_; }

  void Check(const PreparedDocument& document) const override {
    for (const auto& [rule, spec] : rules_) {
      if (rule->check != nullptr) rule->check(spec, document);
    }
    if (!document.choices.is_null()) {
      ChoiceText(document);
    } else if (several_ && !takes_any_) {
      const Json& target = document.target;
      const std::vector<Json> targets =
          target.is_string() || target.is_array() ? Iterate(target) : std::vector<Json>{target};
      const bool texts = std::all_of(targets.begin(), targets.end(),
                                     [](const Json& one) { return one.is_string(); });
      if ((targets.empty() || !texts) && !AllTake(targets))
        RefuseTarget(document, "text or a list of texts");
    } else if (runs_code_ && !document.target.is_string()) {
      RefuseTarget(document, "the text of a test");
    }
  }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json* detail) const override {
    Json python;
    return RunKeeping(document, filtered, detail, &python);
  }

  Json RunKeeping(const PreparedDocument& document, const std::vector<Json>& filtered, Json* detail,
                  Json* python) const override {
    if (filtered.empty()) throw Error(ErrorKind::kInput, "the document has no response");
    if (filtered[0].is_null() && !takes_any_)
      throw AnswerError("no text", "the filters leave null, expected text");
    TextAnswer answer{Gold(document, filtered[0]), filtered[0], &document};
    Json metrics = Json::object();
    Json kept = Json::object();
    for (size_t i = 0; i < scorers_.size(); ++i) {
      scorers_[i](answer, {&metrics, detail, &kept});
      // The harness leaves the list that it made for exact_match to the metrics behind it.
      if (repeats_answer_[i]) answer.result = Json(answer.gold.size(), answer.result);
    }
    if (holds_texts_) CheckBytes(metrics, kept);
    *python = kept.empty() ? Json() : std::move(kept);
    return metrics;
  }

 private:
  struct Outcome {
    Json* metrics;
    Json* detail;
    Json* python;
  };
  using Scorer = std::function<void(const TextAnswer&, const Outcome&)>;

  void AddOwn(const TaskDefinition& task, const MetricSpec& spec, TaskCode* code) {
    scorers_.push_back(
        [scorer = MakeOwnMetric(task, spec, code)](const TextAnswer& answer, const Outcome& out) {
          scorer(answer, out.metrics, out.python);
        });
    repeats_answer_.push_back(several_ && spec.metric == "exact_match");
    names_.push_back(spec.metric);
    holds_texts_ = true;
  }

  static void CheckBytes(const Json& metrics, const Json& python) {
    const size_t bytes = ToLine(metrics).size() + ToLine(python).size();
    if (bytes <= kNumbersBytesMax) return;
    throw Error(
        ErrorKind::kInput,
        fmt::format("the metrics have {}, expected at most {}", HumanBytes(bytes),
                    HumanBytes(kNumbersBytesMax)),
        "ask for shorter answers (max_gen_toks), or let metrics keep less of each document");
  }

  // Whether each metric scores a list of targets without text.
  bool AllTake(const Json& targets) const {
    return std::all_of(rules_.begin(), rules_.end(), [&](const auto& rule) {
      return rule.first->takes_targets != nullptr &&
             rule.first->takes_targets(rule.second, targets);
    });
  }

  Json Gold(const PreparedDocument& document, const Json& result) const {
    const Json& target = document.target;
    if (!document.choices.is_null()) return ChoiceText(document);
    if (several_) {
      // list(gold): if a document has one text in place of a list, the text is split into
      // characters.
      return target.is_string() || target.is_array() ? Json(Iterate(target))
                                                     : Json::array({target});
    }
    if (takes_any_ || result.is_array() || target.type() == result.type()) return target;
    if (result.is_string()) return PythonStr(target);
    throw Error(ErrorKind::kInput,
                fmt::format("the filters leave {}, expected text", ToLine(result)));
  }

  [[noreturn]] static void RefuseTarget(const PreparedDocument& document, const char* expected) {
    throw Error(ErrorKind::kInput, fmt::format("doc_to_target gives {}, expected {}",
                                               Shortened(ToLine(document.target), 200), expected));
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
  bool takes_any_ = false;  // any target and any response
  bool runs_code_ = false;
  bool holds_texts_ = false;  // values may be as long as answers
  std::vector<Scorer> scorers_;
  std::vector<bool> repeats_answer_;  ///< by scorer
  std::vector<std::pair<const TextRule*, MetricSpec>> rules_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<ProcessResults> MakeGenerationResults(const TaskDefinition& task,
                                                      CodeRunner* runner, TaskCode* code) {
  return std::make_unique<GenerateUntil>(task, runner, code);
}

}  // namespace evald

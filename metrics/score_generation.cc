// process_results of the output type generate_until.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/filter_support.h"
#include "metrics/judge/metric.h"
#include "metrics/line_index.h"
#include "metrics/math_metric.h"
#include "metrics/own_metrics.h"
#include "metrics/process_results.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/score_number.h"
#include "python/value.h"

namespace evald {
namespace {

class GenerateUntil : public ProcessResults {
 public:
  GenerateUntil(const TaskDefinition& task, CodeRunner* runner, TaskCode* code, MathComparer* math,
                JudgePanel* judge)
      : several_(task.multiple_target) {
    const OutputType& type = OutputTypeOf(task.output_type);
    for (const MetricSpec& spec : task.metrics) {
      if (IsOwnMetric(task, spec)) {
        AddOwn(task, spec, code);
        continue;
      }
      if (spec.function == kJudgeFunction) {
        AddJudge(task, spec, judge);
        continue;
      }
      const TextRule& rule = *ServedMetric(spec, type).text;
      if (rule.compares_math) {
        AddMath(spec, math);
        continue;
      }
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
    for (const std::shared_ptr<const JudgeMetric>& judge : judges_) judge->Check(document);
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
    Fallbacks fallbacks;
    return RunKeeping(document, filtered, detail, &python, &fallbacks);
  }

  Json RunKeeping(const PreparedDocument& document, const std::vector<Json>& filtered, Json* detail,
                  Json* python, Fallbacks* fallbacks) const override {
    if (filtered.empty()) throw Error(ErrorKind::kInput, "the document has no response");
    if (filtered[0].is_null() && !takes_any_)
      throw AnswerError("no text", "the filters leave null, expected text");
    TextAnswer answer{Gold(document, filtered[0]), filtered[0], &document};
    Json metrics = Json::object();
    Json kept = Json::object();
    for (size_t i = 0; i < scorers_.size(); ++i) {
      scorers_[i](answer, {document, &metrics, detail, &kept, fallbacks});
      // The harness leaves the list that it made for exact_match to the metrics behind it.
      if (repeats_answer_[i]) answer.result = Json(answer.gold.size(), answer.result);
    }
    if (holds_texts_) CheckBytes(metrics, kept);
    *python = kept.empty() ? Json() : std::move(kept);
    return metrics;
  }

 private:
  struct Outcome {
    const PreparedDocument& document;
    Json* metrics;
    Json* detail;
    Json* python;
    Fallbacks* fallbacks;
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

  void AddMath(const MetricSpec& spec, MathComparer* math) {
    scorers_.push_back(
        [scorer = MakeMathMetric(spec, math)](const TextAnswer& answer, const Outcome& out) {
          scorer(answer, out.metrics, out.fallbacks);
        });
    repeats_answer_.push_back(false);
    names_.push_back(spec.metric);
  }

  // Scores the answer alone: a list of targets is the template's, and other metrics may follow.
  void AddJudge(const TaskDefinition& task, const MetricSpec& spec, JudgePanel* judge) {
    const auto same =
        std::count_if(task.metrics.begin(), task.metrics.end(),
                      [&](const MetricSpec& other) { return other.metric == spec.metric; });
    if (same > 1) {
      throw Error(ErrorKind::kInput,
                  fmt::format("metric_list has {} metrics with the name '{}'", same, spec.metric),
                  "give the judge another 'name'");
    }
    if (task.unsafe_code) {
      throw Error(ErrorKind::kInput,
                  fmt::format("the metric '{}' stands beside metrics that run programs, which "
                              "would run again whenever the judge has answered",
                              spec.metric),
                  "make a task of its own with the judge");
    }
    judges_.push_back(std::make_shared<const JudgeMetric>(spec, judge));
    scorers_.push_back([metric = judges_.back()](const TextAnswer& answer, const Outcome& out) {
      const Json& target = out.document.choices.is_null() ? out.document.target : answer.gold;
      // While the judge is asked, the document's score counts nothing.
      (*out.metrics)[metric->spec().name] =
          NumberToScore(metric->Score(out.document, target, answer.result, out.detail).value_or(0));
    });
    repeats_answer_.push_back(false);
    names_.push_back(spec.metric);
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
    // Python's True and False are the labels 1 and 0.
    if (!document.choices.is_array() || !(target.is_number_integer() || target.is_boolean())) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("doc_to_choice is set, so that doc_to_target must give a label; found {}",
                      ToLine(target)));
    }
    const auto count = static_cast<int64_t>(document.choices.size());
    const int64_t given = target.is_boolean() ? int64_t{target.get<bool>()} : target.get<int64_t>();
    const int64_t label = given < 0 ? given + count : given;
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
  std::vector<std::shared_ptr<const JudgeMetric>> judges_;
};

}  // namespace

std::unique_ptr<ProcessResults> MakeGenerationResults(const TaskDefinition& task,
                                                      CodeRunner* runner, TaskCode* code,
                                                      MathComparer* math, JudgePanel* judge) {
  return std::make_unique<GenerateUntil>(task, runner, code, math, judge);
}

}  // namespace evald

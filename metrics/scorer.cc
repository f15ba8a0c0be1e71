#include "metrics/scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/regex.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/filter_support.h"
#include "metrics/filters.h"
#include "metrics/judge/panel.h"
#include "metrics/own_metrics.h"
#include "metrics/process_results.h"
#include "metrics/sample_scores.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/score_number.h"

namespace evald {
namespace {

Json Response(Generation&& generation) {
  switch (generation.kind) {
    case RequestKind::kGenerateUntil:
      if (IsUtf8(generation.text)) return std::move(generation.text);
      return ReplaceInvalidUtf8(generation.text);
    case RequestKind::kLoglikelihood:
      return Json::array({NumberToScore(generation.loglikelihood), generation.is_greedy});
    case RequestKind::kLoglikelihoodRolling:
      return NumberToScore(generation.loglikelihood);
  }
  throw Error(ErrorKind::kInternal, "a request kind without a response");
}

void RequireAtMost(size_t most, size_t found, const std::string& what) {
  if (found <= most) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found {}, expected at most {}", what, found, most));
}

void RequireWithinLimits(const TaskDefinition& task) {
  RequireAtMost(kRepeatsMax, static_cast<size_t>(task.repeats), "repeats");
  RequireAtMost(kMetricsMax, task.metrics.size(), "entries of metric_list");
  RequireAtMost(kPipelinesMax, task.filters.size(), "pipelines of filter_list");
  for (const FilterPipeline& pipeline : task.filters) {
    RequireAtMost(kStepsMax, pipeline.steps.size(),
                  fmt::format("steps of the filter pipeline '{}'", pipeline.name));
  }
}

// Whether the metric's aggregation is a function of the task's own, which takes any values.
bool RunsOwn(const TaskDefinition& task, const MetricSpec& spec) {
  return UsesTaskCode(task) && !OwnAggregation(spec.aggregation).empty();
}

// Filters of a task's own get one list of responses for each document.
void CheckOwnFilters(const TaskDefinition& task) {
  const std::vector<std::string> own = OwnMetricsAndFilters(false, {}, task.filters);
  if (own.empty() || task.output_type == "generate_until") return;
  throw Error(ErrorKind::kInput,
              fmt::format("filter_list: the function '{}' filters the responses of a task of "
                          "output_type {}, which is served only for generate_until",
                          own.front(), task.output_type),
              "do in process_results what the filter does");
}

// Checks the first step of a pipeline: it gets as many responses as the task has repeats.
void CheckFirstStep(const TaskDefinition& task, const FilterPipeline& pipeline) {
  if (pipeline.steps.empty() || pipeline.steps.front().function != "take_first_k") return;
  const Json k = pipeline.steps.front().kwargs.value("k", Json());
  if (!k.is_number_integer() || k.get<int64_t>() <= task.repeats) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("filter_list, pipeline '{}': take_first_k takes {} responses, and repeats is {}",
                  pipeline.name, k.get<int64_t>(), task.repeats),
      "raise the task's repeats");
}

}  // namespace

std::unique_ptr<ProcessResults> MakeProcessResults(const TaskDefinition& task, CodeRunner* runner,
                                                   TaskCode* code, MathComparer* math,
                                                   JudgePanel* judge) {
  if (!task.process_results.empty()) {
    if (const TaskResults* known = FindTaskResults(task.process_results))
      return MakeTaskResults(task, *known);
    if (UsesTaskCode(task)) return MakeCodeResults(task, code);
    RefuseFunction(
        "", task.process_results, "(process_results) is not built in", TaskResultsNames(),
        "let evald run the Python code of task files in a sandbox with 'task_code: allow' "
        "or --allow-task-code (docs/task-code.md); built in are ");
  }
  const std::string_view type = OutputTypeOf(task.output_type).name;
  if (type == "generate_until") return MakeGenerationResults(task, runner, code, math, judge);
  if (type == "loglikelihood") return MakeLikelihoodResults(task);
  if (type == "loglikelihood_rolling") return MakeRollingResults(task);
  return MakeMultipleChoiceResults(task);
}

UsedMetrics UsedMetricsOf(const TaskDefinition& task) {
  const OutputType& type = OutputTypeOf(task.output_type);
  UsedMetrics used;
  std::set<const Metric*> metrics;
  for (const MetricSpec& spec : task.metrics) {
    const Metric& metric = ServedMetric(spec, type);
    if (type.gives(metric) == ValueForm::kNothing) continue;
    metrics.insert(&metric);
    used.names.push_back(spec.metric);
  }
  for (const Metric* metric : Metrics()) {
    if (metrics.count(metric) > 0) used.in_order.push_back(metric);
  }
  return used;
}

void ThrowTooLongScore() {
  throw Error(ErrorKind::kInput,
              fmt::format("what the filters leave takes more than {}", HumanBytes(kScoreBytesMax)),
              "ask for fewer repeats or shorter answers, or end the pipelines of filter_list with "
              "take_first");
}

struct Scorer::State {
  std::string task;
  RequestKind kind;
  std::vector<FilterChain> filters;
  std::unique_ptr<ProcessResults> process;
  std::optional<SampleScores> samples;  // if several samples are scored apart

  // The responses of each request, with repeats side by side. `generations` is in order of (idx,
  // repeat).
  std::vector<Json> Requests(std::vector<Generation> generations) const {
    std::vector<Json> requests;
    for (Generation& generation : generations) {
      if (generation.kind != kind) {
        throw Error(ErrorKind::kInput,
                    fmt::format("request {} was answered as {}, expected {}", generation.idx,
                                ToString(generation.kind), ToString(kind)));
      }
      const auto idx = static_cast<int64_t>(requests.size()) - 1;
      if (generation.idx != idx && generation.idx != idx + 1) {
        throw Error(ErrorKind::kInfrastructure,
                    fmt::format("request {} has no generation", idx + 1));
      }
      if (generation.idx == idx + 1) requests.push_back(Json::array());
      requests.back().push_back(Response(std::move(generation)));
    }
    return requests;
  }

  // An answer that a step or a metric cannot take is scored as kNoAnswer.
  FilterScore ScoreUnder(const FilterChain& chain, const PreparedDocument& document,
                         const std::vector<Json>& requests, Json* detail) const {
    FilterScore score;
    score.filter = chain.name();
    std::vector<Json> filtered;
    const bool taken = TakesAnswer(&score.fallbacks, [&] {
      for (const Json& responses : requests) {
        filtered.push_back(chain.Apply(responses, document, &score.fallbacks, &score.own_steps));
      }
      score.metrics =
          process->RunKeeping(document, filtered, detail, &score.python, &score.fallbacks);
    });
    if (!taken) {
      *detail = nullptr;
      filtered.assign(requests.size(), kNoAnswer);
      score.metrics =
          process->RunKeeping(document, filtered, detail, &score.python, &score.fallbacks);
    }
    score.filtered = std::move(filtered);
    return score;
  }

  // Scores each sample as if it were the only one.
  FilterScore ScoreSamples(const FilterChain& chain, const PreparedDocument& document,
                           const std::vector<Json>& requests, Json* detail) const {
    std::vector<FilterScore> scores;
    Json details = Json::array();
    for (size_t sample = 0; sample < static_cast<size_t>(samples->samples()); ++sample) {
      std::vector<Json> responses;
      for (const Json& all : requests) responses.push_back(Json::array({all.at(sample)}));
      Json own;
      scores.push_back(ScoreUnder(chain, document, responses, &own));
      details.push_back(std::move(own));
    }
    const bool any =
        std::any_of(details.begin(), details.end(), [](const Json& own) { return !own.is_null(); });
    if (any) *detail = std::move(details);
    return samples->Merged(std::move(scores));
  }

  FilterScore ScoreOf(const FilterChain& chain, const PreparedDocument& document,
                      const std::vector<Json>& requests, Json* detail) const {
    return samples ? ScoreSamples(chain, document, requests, detail)
                   : ScoreUnder(chain, document, requests, detail);
  }
};

Scorer::Scorer(const TaskDefinition& task, CodeRunner* runner, TaskCode* code, MathComparer* math,
               JudgePanel* judge)
    : state_(std::make_unique<State>()) {
  state_->task = task.name;
  try {
    RequireWithinLimits(task);
    const OutputType& type = OutputTypeOf(task.output_type);
    state_->kind = type.kind;
    for (const MetricSpec& spec : task.metrics) {
      if (!RunsOwn(task, spec)) CheckAggregation(spec.aggregation);
    }
    CheckOwnFilters(task);
    for (const FilterPipeline& pipeline : task.filters) {
      state_->filters.emplace_back(pipeline, UsesTaskCode(task), code);
      CheckFirstStep(task, pipeline);
    }
    if (state_->filters.empty()) {
      throw Error(ErrorKind::kInput,
                  "there is no filter pipeline; the default is 'none' with take_first");
    }
    state_->process = MakeProcessResults(task, runner, code, math, judge);
    if (!task.sample_metrics.empty()) state_->samples.emplace(task, state_->process->Metrics());
    if (!task.process_results.empty()) return;  // the function gives values of any form
    for (const MetricSpec& spec : task.metrics) {
      if (IsOwnMetric(task, spec)) continue;  // its function gives values of any form
      const ValueForm gives = type.gives(ServedMetric(spec, type));
      if (!RunsOwn(task, spec)) CheckAggregates(spec.aggregation, spec.metric, gives);
    }
  } catch (Error& e) {
    e.AddContext(fmt::format("task '{}'", task.name));
    throw;
  }
}

Scorer::~Scorer() = default;

std::vector<std::pair<std::string, std::string>> Scorer::Metrics() const {
  std::vector<std::pair<std::string, std::string>> metrics;
  for (const FilterChain& chain : state_->filters) {
    for (const std::string& metric : state_->process->Metrics())
      metrics.emplace_back(metric, chain.name());
    if (!state_->samples) continue;
    for (const std::string& metric : state_->samples->names())
      metrics.emplace_back(metric, chain.name());
  }
  return metrics;
}

void Scorer::Check(const PreparedDocument& document) const { state_->process->Check(document); }

int Scorer::Requests(const PreparedDocument& document) const {
  return static_cast<int>(state_->process->Requests(document));
}

ScoredDocument Scorer::Score(const PreparedDocument& document,
                             std::vector<Generation> generations) const {
  const RegexDocument searches;
  try {
    const std::vector<Json> requests = state_->Requests(std::move(generations));
    ScoredDocument score;
    score.doc_id = document.doc_id;
    uint64_t bytes = 0;
    for (const FilterChain& chain : state_->filters) {
      Json detail;
      score.filters.push_back(state_->ScoreOf(chain, document, requests, &detail));
      const FilterScore& added = score.filters.back();
      bytes += BytesOf(added.filtered) + BytesOf(added.metrics) + BytesOf(added.python) +
               BytesOf(added.own_steps) + BytesOf(detail);
      if (bytes > kScoreBytesMax) ThrowTooLongScore();
      if (detail.is_null()) continue;
      if (score.detail.is_null()) score.detail = Json::object();
      score.detail[chain.name()] = std::move(detail);
    }
    return score;
  } catch (const NotJudged&) {
    throw;  // the document is named beside its cause, which many documents may share
  } catch (Error& e) {
    e.AddContext(fmt::format("task '{}', document {}", state_->task, document.doc_id));
    throw;
  }
}

}  // namespace evald

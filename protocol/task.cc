#include "evald/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

Json MetricToJson(const MetricSpec& metric) {
  return {{"metric", metric.metric},
          {"function", metric.function},
          {"aggregation", metric.aggregation},
          {"higher_is_better", metric.higher_is_better},
          {"kwargs", metric.kwargs}};
}

Json PipelineToJson(const FilterPipeline& pipeline) {
  Json steps = Json::array();
  for (const FilterStep& step : pipeline.steps) {
    steps.push_back({{"function", step.function}, {"kwargs", step.kwargs}});
  }
  return {{"name", pipeline.name}, {"steps", std::move(steps)}};
}

Json ObjectField(const Json& json, const std::string& key, const std::string& where) {
  Json value = Field<Json>(json, key, where);
  if (!value.is_object()) ThrowField(json, key, "an object", where);
  return value;
}

MetricSpec MetricFromJson(const Json& json, const std::string& where) {
  MetricSpec metric;
  metric.metric = Field<std::string>(json, "metric", where);
  metric.function = Field<std::string>(json, "function", where);
  metric.aggregation = Field<std::string>(json, "aggregation", where);
  metric.higher_is_better = Field<bool>(json, "higher_is_better", where);
  metric.kwargs = ObjectField(json, "kwargs", where);
  return metric;
}

FilterPipeline PipelineFromJson(const Json& json, const std::string& where) {
  FilterPipeline pipeline;
  pipeline.name = Field<std::string>(json, "name", where);
  for (const Json& item : Field<std::vector<Json>>(json, "steps", where)) {
    const std::string place = fmt::format("{}: steps[{}]", where, pipeline.steps.size());
    pipeline.steps.push_back(
        {Field<std::string>(item, "function", place), ObjectField(item, "kwargs", place)});
  }
  return pipeline;
}

}  // namespace

void RefuseFunction(const std::string& where, const std::string& function,
                    const std::string& problem, const std::vector<std::string>& served,
                    const std::string& remedy) {
  const std::string known = remedy + (served.empty() ? "none" : Join(served, ", "));
  if (!function.starts_with('/')) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}the function '{}' {}{}", where, function, problem,
                            Suggestion(function, served)),
                known);
  }
  const size_t dot = function.rfind('.');
  throw Error(ErrorKind::kInput,
              fmt::format("{}the function '{}' of {}.py {}", where, function.substr(dot + 1),
                          function.substr(0, dot), problem),
              known +
                  ". A function counts as lm_eval's if its file has the content of lm_eval's "
                  "release");
}

bool UsesTaskCode(const TaskDefinition& task) {
  return task.sources.is_object() && task.sources.contains("code");
}

bool UsesJudge(const TaskDefinition& task) {
  return std::any_of(task.metrics.begin(), task.metrics.end(),
                     [](const MetricSpec& spec) { return spec.function == kJudgeFunction; });
}

std::string OwnFilterFunction(const FilterStep& step) {
  constexpr std::string_view kTag = "!function ";
  std::string named = step.function;
  if (named == "custom") {
    const auto found = step.kwargs.find("filter_fn");
    named = found != step.kwargs.end() && found->is_string() ? found->get<std::string>() : "";
  }
  if (!named.starts_with(kTag)) return "";
  std::string function = named.substr(kTag.size());
  return IsOwnFunction(function) ? function : "";
}

std::vector<std::string> OwnMetricsAndFilters(bool with_metrics,
                                              const std::vector<MetricSpec>& metrics,
                                              const std::vector<FilterPipeline>& filters) {
  std::vector<std::string> functions;
  const auto add = [&](const std::string& function) {
    const bool known = std::find(functions.begin(), functions.end(), function) != functions.end();
    if (!known) functions.push_back(function);
  };
  for (const MetricSpec& spec : metrics) {
    if (with_metrics && IsOwnFunction(spec.function)) add(spec.function);
  }
  for (const FilterPipeline& pipeline : filters) {
    for (const FilterStep& step : pipeline.steps) {
      const std::string function = OwnFilterFunction(step);
      if (!function.empty()) add(function);
    }
  }
  return functions;
}

Json ToJson(const CommandSpec& spec) {
  Json scores = Json::array();
  for (const CommandScore& score : spec.scores)
    scores.push_back(
        {{"name", score.name}, {"path", score.path}, {"higher_is_better", score.higher_is_better}});
  return {{"command", spec.command},
          {"environment", spec.environment},
          {"results", {{"file", spec.results_file}, {"scores", std::move(scores)}}},
          {"time_limit", spec.time_limit_s},
          {"eval_dir", spec.eval_dir}};
}

CommandSpec CommandFromJson(const Json& json, const std::string& where) {
  CommandSpec spec;
  spec.command = Field<std::vector<std::string>>(json, "command", where);
  if (spec.command.empty()) ThrowField(json, "command", "at least one word", where);
  const Json environment = ObjectField(json, "environment", where);
  for (const auto& [name, value] : environment.items()) {
    if (!value.is_string()) ThrowField(json, "environment", "texts", where);
    spec.environment[name] = value.get<std::string>();
  }
  const Json results = ObjectField(json, "results", where);
  spec.results_file = Field<std::string>(results, "file", where);
  for (const Json& score : Field<std::vector<Json>>(results, "scores", where)) {
    spec.scores.push_back({Field<std::string>(score, "name", where),
                           Field<std::string>(score, "path", where),
                           Field<bool>(score, "higher_is_better", where)});
  }
  if (spec.scores.empty()) ThrowField(results, "scores", "at least one score", where);
  spec.time_limit_s = Field<double>(json, "time_limit", where);
  if (!(spec.time_limit_s > 0)) ThrowField(json, "time_limit", "seconds above 0", where);
  spec.eval_dir = Field<std::string>(json, "eval_dir", where);
  return spec;
}

Json ToJson(const TaskDefinition& task) {
  Json metrics = Json::array();
  for (const MetricSpec& metric : task.metrics) metrics.push_back(MetricToJson(metric));
  Json filters = Json::array();
  for (const FilterPipeline& filter : task.filters) filters.push_back(PipelineToJson(filter));
  Json json = Json::object();
  json["name"] = task.name;
  json["alias"] = task.alias;
  json["version"] = task.version;
  json["output_type"] = task.output_type;
  json["repeats"] = task.repeats;
  if (!task.sample_metrics.empty()) json["sample_metrics"] = task.sample_metrics;
  json["num_fewshot"] = task.num_fewshot;
  json["unsafe_code"] = task.unsafe_code;
  json["multiple_target"] = task.multiple_target;
  json["multiple_input"] = task.multiple_input;
  json["process_results"] = task.process_results;
  json["metrics"] = std::move(metrics);
  json["filters"] = std::move(filters);
  json["original_documents"] = task.original_documents;
  json["effective_documents"] = task.effective_documents;
  json["config"] = task.config;
  json["sources"] = task.sources;
  if (task.command) json["command"] = ToJson(*task.command);
  return json;
}

TaskDefinition TaskFromJson(const Json& json, const std::string& where) {
  TaskDefinition task;
  task.name = Field<std::string>(json, "name", where);
  task.alias = Field<std::string>(json, "alias", where);
  task.version = Field<Json>(json, "version", where);
  task.output_type = Field<std::string>(json, "output_type", where);
  task.repeats = Field<int>(json, "repeats", where);
  if (task.repeats < 1) ThrowField(json, "repeats", "at least 1", where);
  task.sample_metrics = FieldOr<std::vector<std::string>>(json, "sample_metrics", {}, where);
  task.num_fewshot = Field<int>(json, "num_fewshot", where);
  task.unsafe_code = Field<bool>(json, "unsafe_code", where);
  task.multiple_target = Field<bool>(json, "multiple_target", where);
  task.multiple_input = Field<bool>(json, "multiple_input", where);
  task.process_results = Field<std::string>(json, "process_results", where);
  for (const Json& item : Field<std::vector<Json>>(json, "metrics", where)) {
    task.metrics.push_back(
        MetricFromJson(item, fmt::format("{}: metrics[{}]", where, task.metrics.size())));
  }
  for (const Json& item : Field<std::vector<Json>>(json, "filters", where)) {
    task.filters.push_back(
        PipelineFromJson(item, fmt::format("{}: filters[{}]", where, task.filters.size())));
  }
  task.original_documents = Field<int64_t>(json, "original_documents", where);
  task.effective_documents = Field<int64_t>(json, "effective_documents", where);
  task.config = Field<Json>(json, "config", where);
  task.sources = Field<Json>(json, "sources", where);
  if (json.contains("command"))
    task.command = CommandFromJson(json.at("command"), where + ": command");
  return task;
}

Json ToJson(const GroupDefinition& group) {
  Json metrics = Json::array();
  for (const GroupMetric& metric : group.metrics) {
    metrics.push_back({{"metric", metric.metric},
                       {"aggregation", metric.aggregation},
                       {"weight_by_size", metric.weight_by_size},
                       {"filters", metric.filters}});
  }
  Json json = Json::object();
  json["name"] = group.name;
  json["alias"] = group.alias;
  json["version"] = group.version;
  json["children"] = group.children;
  json["metrics"] = std::move(metrics);
  return json;
}

GroupDefinition GroupFromJson(const Json& json, const std::string& where) {
  GroupDefinition group;
  group.name = Field<std::string>(json, "name", where);
  group.alias = Field<std::string>(json, "alias", where);
  group.version = Field<Json>(json, "version", where);
  group.children = Field<std::vector<std::string>>(json, "children", where);
  for (const Json& item : Field<std::vector<Json>>(json, "metrics", where)) {
    const std::string place = fmt::format("{}: metrics[{}]", where, group.metrics.size());
    group.metrics.push_back({Field<std::string>(item, "metric", place),
                             Field<std::string>(item, "aggregation", place),
                             Field<bool>(item, "weight_by_size", place),
                             Field<std::vector<std::string>>(item, "filters", place)});
  }
  return group;
}

}  // namespace evald

#include "orchestrator/report/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "metrics/aggregate.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/sample_metrics.h"
#include "python/json.h"
#include "python/number.h"
#include "python/regex.h"
#include "python/value.h"

namespace evald {
namespace {

using ByName = std::map<std::string, Json>;

Json Sorted(const ByName& entries) {
  Json object = Json::object();
  for (const auto& [name, value] : entries) object[name] = value;
  return object;
}

// ConfigurableTask.VERSION: "Yaml" unless the task's metadata has a version.
Json TaskVersion(const TaskDefinition& task) {
  if (!task.version.is_null()) return task.version;
  const Json metadata = task.config.is_object() ? task.config.value("metadata", Json()) : Json();
  return metadata.is_object() && metadata.contains("version") ? Json() : Json("Yaml");
}

Json GroupVersion(const GroupDefinition& group) {
  return group.version.is_null() ? "N/A" : PythonStr(group.version);
}

// metric -> whether higher is better. Metrics that a function made (pass@1) take its direction.
Json Directions(const TaskDefinition& task, const Json& entry) {
  Json directions = Json::object();
  for (const MetricSpec& spec : task.metrics) {
    directions[spec.metric] = spec.higher_is_better;
    for (const auto& [key, value] : entry.items()) {
      const std::string metric = key.substr(0, key.find(','));
      if (GivesValue(spec, metric) && metric.find("_stderr") == std::string::npos) {
        directions[metric] = spec.higher_is_better;
      }
      if (const std::string_view of = MetricOfSamples(metric); !of.empty() && GivesValue(spec, of))
        directions[metric] = spec.higher_is_better;
    }
  }
  return directions;
}

// The directions on which all children that have one agree; null for a metric on which they differ.
Json GroupDirections(const GroupDefinition& group, const ByName& directions) {
  Json merged = Json::object();
  for (const std::string& child : group.children) {
    const auto found = directions.find(child);
    if (found == directions.end()) continue;
    for (const auto& [metric, higher] : found->second.items()) {
      if (!merged.contains(metric)) {
        merged[metric] = higher;
      } else if (merged[metric] != higher) {
        merged[metric] = nullptr;
      }
    }
  }
  return merged;
}

// The number of examples, if all children have the same.
std::optional<Json> GroupShots(const GroupDefinition& group, const ByName& shots) {
  std::set<int64_t> values;
  for (const std::string& child : group.children) {
    const auto found = shots.find(child);
    if (found != shots.end()) values.insert(found->second.get<int64_t>());
  }
  if (values.size() != 1) return std::nullopt;
  return *values.begin();
}

void AddTracker(const ResultsInput& input, Json* results) {
  static const PythonRegex kUnfit("[\"<>:/|\\\\?*\\[\\]]+");
  (*results)["model_source"] = input.model_source;
  (*results)["model_name"] = input.model_name;
  (*results)["model_name_sanitized"] = kUnfit.ReplaceAll(input.model_name, "__");
  const auto prompt = [&](const char* key) { return input.prompts.value(key, Json()); };
  const auto hash = [](const Json& text) {
    return text.is_string() ? Json(Sha256Hex(text.get<std::string>())) : Json();
  };
  (*results)["system_instruction"] = prompt("system_instruction");
  (*results)["system_instruction_sha"] = hash(prompt("system_instruction"));
  (*results)["fewshot_as_multiturn"] = prompt("fewshot_as_multiturn");
  (*results)["chat_template"] = prompt("chat_template");
  (*results)["chat_template_sha"] = hash(prompt("chat_template"));
  (*results)["total_evaluation_time_seconds"] = python::FloatRepr(input.seconds);
}

}  // namespace

Json BuildResults(const ResultsInput& input) {
  Json task_entries = Json::object();
  ByName configs, versions, shots, directions;
  Json samples = Json::object();
  for (const TaskDefinition& task : input.tasks) {
    const auto found = input.entries.find(task.name);
    if (found == input.entries.end()) continue;
    task_entries[task.name] = found->second;
    configs[task.name] = task.config;
    versions[task.name] = TaskVersion(task);
    shots[task.name] = task.num_fewshot;
    directions[task.name] = Directions(task, found->second);
    samples[task.name] = {{"original", task.original_documents},
                          {"effective", found->second.value("sample_len", int64_t{0})}};
  }
  const Json group_entries = AggregateGroups(input.groups, task_entries);
  Json groups = Json::object();
  Json members = Json::object();
  for (const GroupDefinition& group : input.groups) {
    versions[group.name] = GroupVersion(group);
    members[group.name] = group.children;
    const Json merged = GroupDirections(group, directions);
    if (!merged.empty()) directions[group.name] = merged;
    if (const auto shared = GroupShots(group, shots)) shots[group.name] = *shared;
  }
  Json all = task_entries;
  for (const auto& [name, entry] : group_entries.items()) {
    all[name] = entry;
    const auto group = std::find_if(input.groups.begin(), input.groups.end(),
                                    [&](const GroupDefinition& g) { return g.name == name; });
    if (!group->metrics.empty()) groups[name] = entry;
  }
  Json results = {{"results", std::move(all)}};
  if (!groups.empty()) results["groups"] = std::move(groups);
  results["group_subtasks"] = std::move(members);
  results["configs"] = Sorted(configs);
  results["versions"] = Sorted(versions);
  results["n-shot"] = Sorted(shots);
  results["higher_is_better"] = Sorted(directions);
  results["n-samples"] = std::move(samples);
  results["config"] = input.config;
  results["git_hash"] = input.git_hash.empty() ? Json() : Json(input.git_hash);
  results["date"] = input.date;
  results["task_hashes"] = input.task_hashes;
  AddTracker(input, &results);
  results["evald"] = input.evald;
  return results;
}

std::string ResultsText(const Json& results) { return PythonJsonIndented(results) + "\n"; }

}  // namespace evald

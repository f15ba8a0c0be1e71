#pragma once

#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// Refuses a `!function` that is not built in. Throws Error(kInput) "<where>the function 'f' ...
/// <problem>" and names the nearest of `served`. A name that begins with "/" is a function of a
/// user's own file (datasets/known_modules.h). The error then names the file, and the remedy says
/// which files count as lm_eval's. `served` follows `remedy`.
[[noreturn]] void RefuseFunction(const std::string& where, const std::string& function,
                                 const std::string& problem, const std::vector<std::string>& served,
                                 const std::string& remedy);

/// One metric of a task, as its YAML file lists it.
struct MetricSpec {
  std::string metric;       ///< "exact_match", "acc"; the function's last name for a !function
  std::string function;     ///< of a !function its name (datasets/known_modules.h), else ""
  std::string aggregation;  ///< "mean", ...
  bool higher_is_better = true;
  Json kwargs = Json::object();  ///< every other key: ignore_case, regexes_to_ignore, k, ...
};

/// One step of a filter pipeline: {"function": "regex", ...}.
struct FilterStep {
  std::string function;  ///< "regex", "take_first", "custom", ...
  Json kwargs =
      Json::object();  ///< a !function value is the string "!function <folder>/utils.name"
};

struct FilterPipeline {
  std::string name;  ///< "strict-match"; "none" for the default [take_first]
  std::vector<FilterStep> steps;
};

/// A task after inheritance, defaults and overrides. It holds all that scoring and reporting need
/// to know of the task. It is kept as task.json in the prepared folder.
struct TaskDefinition {
  std::string name;
  std::string alias;  ///< shown in tables; the name unless task_alias gives another
  Json version;       ///< metadata.version, or null
  std::string
      output_type;  ///< generate_until, loglikelihood, loglikelihood_rolling, multiple_choice
  int repeats = 1;
  int num_fewshot = 0;
  bool unsafe_code = false;      ///< scoring runs the model's code
  bool multiple_target = false;  ///< doc_to_target gives a list
  bool multiple_input = false;   ///< doc_to_text gives an index; the choices are the contexts
  std::string process_results;   ///< a !function that replaces the metrics' own rule, or ""
  std::vector<MetricSpec> metrics;
  std::vector<FilterPipeline> filters;
  int64_t original_documents = 0;   ///< rows of the evaluated split
  int64_t effective_documents = 0;  ///< those of them that are evaluated (limit)
  Json config;   ///< the task's whole configuration as lm-evaluation-harness reports it
  Json sources;  ///< the parts of the content key: data files with hashes, few-shot seed, ...
};

/// An aggregation of a group over its leaf tasks.
struct GroupMetric {
  std::string metric;
  std::string aggregation = "mean";
  bool weight_by_size = true;
  std::vector<std::string> filters = {"none"};
};

struct GroupDefinition {
  std::string name;
  std::string alias;
  Json version;
  std::vector<std::string> children;  ///< tasks and groups, in order
  std::vector<GroupMetric> metrics;   ///< empty: the group is only a heading
};

Json ToJson(const TaskDefinition& task);
/// Throws Error(kInput) "<where>: ...".
TaskDefinition TaskFromJson(const Json& json, const std::string& where);
Json ToJson(const GroupDefinition& group);
/// Throws Error(kInput) "<where>: ...".
GroupDefinition GroupFromJson(const Json& json, const std::string& where);

}  // namespace evald

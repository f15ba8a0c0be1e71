#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

/// One score in the results file of a command.
struct CommandScore {
  std::string name;  ///< the metric's name in results
  std::string path;  ///< where the number is, "$.results.scores[0].value" (base/json_path.h)
  bool higher_is_better = true;
};

/// A task whose score a program of the user's computes: any harness that talks to a model over an
/// OpenAI-compatible API (docs/tasks.md, "Commands"). Words, values and `results_file` may hold
/// placeholders, such as {checkpoint} (base/placeholders.h).
struct CommandSpec {
  std::vector<std::string> command;                ///< the program and its arguments
  std::map<std::string, std::string> environment;  ///< added to the worker's own
  std::string results_file;                        ///< a pattern below the program's folder
  std::vector<CommandScore> scores;
  double time_limit_s = 3600;
  /// The folder of eval.yaml, for {eval_dir} and a program named by a relative path; "": not needed
  std::string eval_dir;
};

/// The placeholders that texts of a command may hold.
inline constexpr const char* kCommandPlaceholders[] = {"base_url",   "api_key", "model",
                                                       "checkpoint", "output",  "eval_dir"};

/// The function of the metrics of a command: each is the number of its name that the program gave.
inline constexpr const char* kCommandMetric = "command/score";

/// The metric `judge`: another model rates the answer (docs/metrics.md, "A judge"). A task's file
/// names the metric by kJudgeName, and may give it another name in results.
inline constexpr const char* kJudgeName = "judge";
inline constexpr const char* kJudgeFunction = "judge/ask";

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
  /// Metrics of several samples: "avg@8", "exact_match:pass@4" (metrics/scoring/sample_metrics.h)
  std::vector<std::string> sample_metrics;
  std::vector<FilterPipeline> filters;
  int64_t original_documents = 0;   ///< rows of the evaluated split
  int64_t effective_documents = 0;  ///< those of them that are evaluated (limit)
  Json config;   ///< the task's whole configuration as lm-evaluation-harness reports it
  Json sources;  ///< the parts of the content key: data files with hashes, few-shot seed, ...
  /// A program's scores: the task has one document with one request, which the program answers
  std::optional<CommandSpec> command;
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

/// {"command": [...], "environment": {...}, "results": {"file", "scores": [...]}, "time_limit",
/// "eval_dir"}
Json ToJson(const CommandSpec& spec);
/// Throws Error(kInput) "<where>: ...".
CommandSpec CommandFromJson(const Json& json, const std::string& where);

/// Whether the task's own Python functions run (docs/task-code.md).
bool UsesTaskCode(const TaskDefinition& task);

/// Whether another model rates the task's answers.
bool UsesJudge(const TaskDefinition& task);

/// Whether a function is one of a user's own file (datasets/known_modules.h), which is never built
/// in.
inline bool IsOwnFunction(std::string_view function) { return function.starts_with('/'); }

/// The user's own function that a step of a filter pipeline names, as "!function" in the place of a
/// filter's name or as `filter_fn` of `custom`; "" for any other step.
std::string OwnFilterFunction(const FilterStep& step);

/// The users' own functions that metrics (if `with_metrics`) and filters name, each once. With
/// process_results, no metric is called.
std::vector<std::string> OwnMetricsAndFilters(bool with_metrics,
                                              const std::vector<MetricSpec>& metrics,
                                              const std::vector<FilterPipeline>& filters);

Json ToJson(const TaskDefinition& task);
/// Throws Error(kInput) "<where>: ...".
TaskDefinition TaskFromJson(const Json& json, const std::string& where);
Json ToJson(const GroupDefinition& group);
/// Throws Error(kInput) "<where>: ...".
GroupDefinition GroupFromJson(const Json& json, const std::string& where);

}  // namespace evald

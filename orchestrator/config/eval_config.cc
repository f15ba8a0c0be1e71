#include "orchestrator/config/eval_config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/names.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/config/command_section.h"
#include "orchestrator/config/engine_section.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/config/key_hints.h"
#include "orchestrator/config/launcher_section.h"
#include "orchestrator/config/sections.h"
#include "orchestrator/config/thinking_section.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

fs::path FromHome(const char* variable, const char* below_home, const char* key) {
  const fs::path folder = UserFolder(variable, below_home);
  if (folder.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("this user (uid {}) has no home folder for {}", ::geteuid(), key),
                fmt::format("set {} in the configuration, or HOME or {} in the environment", key,
                            variable));
  }
  return folder;
}

// A number of documents, or a share of them, as lm-evaluation-harness's --limit.
void ReadLimit(YamlSection& section, TaskRequest* task) {
  const Json limit = section.Value("limit");
  if (limit.is_null()) return;
  if (limit.is_number_integer() && limit.get<double>() >= 1) {
    task->limit = section.Integer("limit", 1, INT64_MAX);
  } else if (limit.is_number_float() && limit.get<double>() > 0 && limit.get<double>() < 1) {
    task->limit_share = limit.get<double>();
  } else {
    section.Refuse("limit",
                   fmt::format("found {}, expected a number of documents such as 100, or a "
                               "share of them between 0 and 1 such as 0.1",
                               limit.dump()));
  }
}

TaskRequest ReadTask(const YamlSection& top, const YAML::Node& node, size_t index,
                     const fs::path& file) {
  TaskRequest task;
  task.where = top.WhereIn("tasks", node);
  if (node.IsScalar()) {
    task.name = node.Scalar();
    return task;
  }
  YamlSection section = top.Item("tasks", node, index);
  if (section.Has("command")) return ReadCommandTask(std::move(section), file);
  const auto name = section.String("task");
  ReadLimit(section, &task);
  task.limit_total = section.Integer("limit_total", 1, INT64_MAX);
  if (const auto shots = section.Integer("num_fewshot", 0, 1000))
    task.num_fewshot = static_cast<int>(*shots);
  if (const auto repeats = section.Integer("repeats", 1, kRepeatsMax))
    task.repeats = static_cast<int>(*repeats);
  task.sample_metrics = section.Strings("sample_metrics");
  task.generation_kwargs = section.Value("generation_kwargs");
  task.metadata = section.Value("metadata");
  if (!task.metadata.is_null() && !task.metadata.is_object())
    section.Refuse("metadata", "is no mapping, expected keys such as max_seq_lengths");
  task.enable_thinking = section.Boolean(kEnableThinking);
  task.think_end = ReadThinkEnd(section);
  task.judge = ReadJudge(section);
  section.Finish();
  if (!name) section.RefuseAbsent("task", "absent, expected the name of a task, group or tag");
  if ((task.limit || task.limit_share) && task.limit_total) {
    section.Refuse("limit_total", "cannot be given together with 'limit'");
  }
  task.name = *name;
  return task;
}

// The keys `limit`, `num_fewshot` and `generation_kwargs` beside `tasks` hold for each task that
// does not give its own. A command has none of them.
void FillFrom(const TaskRequest& all, TaskRequest* task) {
  if (task->command) return;
  if (!task->limit && !task->limit_total && !task->limit_share) {
    task->limit = all.limit;
    task->limit_share = all.limit_share;
  }
  if (!task->num_fewshot) task->num_fewshot = all.num_fewshot;
  if (all.generation_kwargs.is_null()) return;
  Json merged = all.generation_kwargs;
  if (!task->generation_kwargs.is_null()) merged.update(task->generation_kwargs);
  task->generation_kwargs = std::move(merged);
}

void ReadTasks(YamlSection& top, EvalConfig* config) {
  TaskRequest all;
  ReadLimit(top, &all);
  if (const auto shots = top.Integer("num_fewshot", 0, 1000))
    all.num_fewshot = static_cast<int>(*shots);
  all.generation_kwargs = top.Value("generation_kwargs");
  if (!all.generation_kwargs.is_null() && !all.generation_kwargs.is_object())
    top.Refuse("generation_kwargs", "is no mapping");
  const std::vector<YAML::Node> items = top.List("tasks");
  for (size_t i = 0; i < items.size(); ++i) {
    top.Try([&] {
      config->tasks.push_back(ReadTask(top, items[i], i, config->file));
      FillFrom(all, &config->tasks.back());
    });
  }
  if (items.empty() && !top.IsRefused("tasks"))
    top.RefuseAbsent("tasks", "absent or empty, expected a list such as [gsm8k, mmlu]");
}

// The key becomes a setting of the engine, so that two runs that differ in it do not share workers.
void ReadGenerationConfig(YamlSection& top, EvalConfig* config) {
  const std::string key = "generation_config";
  EngineConfig& engine = config->engine;
  const std::string word = top.String(key).value_or("checkpoint");
  if (word != "checkpoint" && word != "ignore") {
    top.Refuse(key, fmt::format("found '{}', expected checkpoint or ignore", word));
  }
  if (engine.settings.contains(key)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: key 'engine.{}': this key stands beside 'engine', not in it",
                            engine.where[key], key));
  }
  if (word == "checkpoint") return;
  engine.generation_config = GenerationConfig::Use::kIgnore;
  if (engine.kind().HasSetting(key)) engine.settings[key] = word;
}

void ReadPrompts(YamlSection& top, EvalConfig* config) {
  PromptsConfig& prompts = config->prompts;
  const Json chat = top.Value("chat_template");
  if (chat.is_boolean()) {
    prompts.chat_template = chat.get<bool>();
  } else if (chat.is_string() && chat != "") {
    prompts.chat_template = true;
    prompts.template_name = chat.get<std::string>();
  } else if (!chat.is_null()) {
    top.Refuse("chat_template",
               fmt::format("found {}, expected true, false or a template's name", chat.dump()));
  }
  if (prompts.chat_template && config->checkpoint.empty()) {
    top.Refuse("chat_template",
               "needs a checkpoint, whose template it is; expected the key 'checkpoint'");
  }
  prompts.system_instruction = top.String("system_instruction").value_or("");
  prompts.fewshot_as_multiturn = top.Boolean("fewshot_as_multiturn");
  if (prompts.fewshot_as_multiturn.value_or(false) && !prompts.chat_template) {
    top.Refuse("fewshot_as_multiturn", "is true, but there are turns only with 'chat_template'");
  }
  prompts.template_arguments = ReadTemplateArguments(top, prompts.chat_template);
  const auto date = top.String("chat_date");
  if (!date) return;
  prompts.chat_date = ReadChatDate(*date);
  if (!prompts.chat_date) {
    top.Refuse("chat_date",
               fmt::format("found '{}', expected a day such as 2026-01-31 or a moment such as "
                           "2026-01-31T14:05:09",
                           *date));
  }
}

Json ToJson(const PromptsConfig& prompts) {
  Json json = {{"chat_template", prompts.template_name.empty() ? Json(prompts.chat_template)
                                                               : Json(prompts.template_name)},
               {"chat_date", ToJson(prompts.chat_date)},
               {"system_instruction", prompts.system_instruction},
               {"fewshot_as_multiturn", prompts.Multiturn()}};
  if (!prompts.template_arguments.empty()) json["chat_template_args"] = prompts.template_arguments;
  return json;
}

void ReadPlaces(YamlSection& top, EvalConfig* config) {
  const fs::path& file = config->file;
  config->staging = ReadStaging(top, file);
  config->launcher = ReadRunLauncher(top, file);
  config->output_dir = ResolvePath(file, "runs");
  if (auto section = top.Section("output")) {
    if (const auto dir = section->String("dir")) config->output_dir = ResolvePath(file, *dir);
    config->run_name = section->String("name").value_or("");
    if (const std::string wrong = WrongWithName(config->run_name);
        !config->run_name.empty() && !wrong.empty()) {
      section->Refuse("name", wrong);
    }
    section->Finish();
  }
  const auto cache = top.String("cache_dir");
  config->cache_dir = cache ? ResolvePath(file, *cache) : DefaultCacheDir();
  config->cache_bytes_max = ReadCacheLimit(top);
  const auto state = top.String("state_dir");
  config->state_dir = state ? ResolvePath(file, *state) : DefaultStateDir();
}

void CheckFolder(const YamlSection& top, const char* key, const fs::path& path,
                 const EvalOverrides& overrides, const char* wrong) {
  const ReadRoots& roots = overrides.roots;
  if (overrides.folders == EvalOverrides::Folders::kJudged || roots.HasFolder(path)) return;
  top.KeepRefusal(
      key, fmt::format("{} {}", path.string(), roots.anywhere() ? wrong : ReadRoots::kNotThere));
}

void ReadName(YamlSection& top, EvalConfig* config) {
  const auto given = top.String("name");
  config->name = given.value_or(
      config->checkpoint.empty() ? config->engine.name : config->checkpoint.filename().string());
  const std::string wrong = WrongWithLabel(config->name);
  if (config->name.empty() || wrong.empty()) return;
  if (given) top.Refuse("name", "must be at most 255 bytes without control characters; " + wrong);
  top.Refuse("checkpoint",
             fmt::format("the folder's name '{}' cannot be the model's name in results: {}; rename "
                         "the folder, or set 'name'",
                         PrintableLine(config->checkpoint.filename().string()), wrong));
}

// `engine`: its section is without faults.
void ReadInputs(YamlSection& top, const EvalOverrides& overrides, bool engine, EvalConfig* config) {
  const fs::path& file = config->file;
  if (const auto checkpoint = top.String("checkpoint")) {
    config->checkpoint = ResolvePath(file, *checkpoint);
    CheckFolder(top, "checkpoint", config->checkpoint, overrides,
                "is not a folder; expected a checkpoint in Hugging Face layout");
  } else if (engine && config->engine.kind().needs_checkpoint && !top.IsRefused("checkpoint")) {
    top.Try([&] {
      top.RefuseAbsent("checkpoint", fmt::format("absent; the {} engine needs a checkpoint folder",
                                                 config->engine.name));
    });
  }
  top.Try([&] { ReadName(top, config); });
  const auto data = top.String("data_dir");
  if (!overrides.data_dir.empty()) {
    config->data_dir = fs::absolute(overrides.data_dir);
    if (!fs::is_directory(config->data_dir)) {
      top.Keep(Error(ErrorKind::kUsage,
                     fmt::format("--data-dir: {} is not a folder", config->data_dir.string()),
                     "name the folder that datasets lie in"));
    }
  } else if (data) {
    config->data_dir = ResolvePath(file, *data);
    CheckFolder(top, "data_dir", config->data_dir, overrides,
                "is not a folder; expected the one that datasets lie in");
  }
  for (const std::string& dir : top.Strings("task_dirs")) {
    config->task_dirs.push_back(ResolvePath(file, dir));
    CheckFolder(top, "task_dirs", config->task_dirs.back(), overrides, "is not a folder");
  }
  config->task_code = ReadTaskCode(top, overrides.task_code);
  if (config->task_code.python.find('/') != std::string::npos)
    config->task_code.python = ResolvePath(file, config->task_code.python).string();
  if (overrides.allow_task_code && config->task_code.allowed == TaskCodeOptions::Allowed::kNo)
    config->task_code.allowed = TaskCodeOptions::Allowed::kBoxed;
}

}  // namespace

fs::path DefaultCacheDir() { return FromHome("XDG_CACHE_HOME", ".cache", "cache_dir"); }
fs::path DefaultStateDir() { return FromHome("XDG_STATE_HOME", ".local/state", "state_dir"); }

namespace {

void CheckPathsAreText(const EvalConfig& config) {
  const std::string& called = config.called;
  RequireTextPath(called, "checkpoint", config.checkpoint);
  RequireTextPath(called, "data_dir", config.data_dir);
  for (const fs::path& dir : config.task_dirs) RequireTextPath(called, "task_dirs", dir);
  RequireTextPath(called, "output.dir", config.output_dir);
  RequireTextPath(called, "staging.root", config.staging.root);
  RequireTextPath(called, "cache_dir", config.cache_dir);
  RequireTextPath(called, "state_dir", config.state_dir);
}

// The keys after a refused one may not have been read: none of them is unknown.
void ReadTheRest(YamlSection& top) {
  for (const EvalKeys& mapping : AllEvalKeys()) {
    if (std::string_view(mapping.section).empty())
      for (const auto& key : mapping.keys) top.Has(key);
  }
}

EvalConfig ReadFrom(YamlSection top, const fs::path& file, const std::string& called,
                    const EvalOverrides& overrides) {
  EvalConfig config;
  config.called = called;
  config.file = fs::absolute(file).lexically_normal();
  top.SetHint(HintOfEvalKey);
  config.roots = overrides.roots;
  const bool tasks = top.Try([&] { ReadTasks(top, &config); });
  const bool engine = top.Try([&] { ReadEngine(top, &config); });
  if (FindEngine(config.engine.name) == nullptr) config.engine.name = kDefaultEngine;
  top.Try([&] { ReadGenerationConfig(top, &config); });
  top.Try([&] { ReadInputs(top, overrides, engine, &config); });
  if (tasks && engine && !top.IsRefused("checkpoint")) top.Try([&] { CheckCommands(config); });
  const bool prompts = top.Try([&] { ReadPrompts(top, &config); });
  if (tasks && engine && prompts) top.Try([&] { SettleThinking(&config); });
  top.Try([&] { config.judge = ReadJudge(top); });
  top.Try([&] { config.workers = ReadWorkers(top, "workers"); });
  top.Try([&] { config.metrics = ReadMetrics(top); });
  top.Try([&] { ReadPlaces(top, &config); });
  config.seed = static_cast<uint64_t>(top.Integer("seed", 0, INT64_MAX).value_or(1234));
  config.fewshot_seed =
      static_cast<uint64_t>(top.Integer("fewshot_seed", 0, INT64_MAX).value_or(1234));
  config.bootstrap_iters =
      static_cast<int>(top.Integer("bootstrap_iters", 0, kBootstrapItersMax).value_or(100000));
  top.Try([&] { config.limits = ReadLimits(top, overrides.limits); });
  top.Try([&] {
    if (auto section = top.Section("gates"))
      config.gates = ReadGates(*section, config.file.parent_path());
  });
  ReadTheRest(top);
  top.Finish();
  CheckPathsAreText(config);
  return config;
}

}  // namespace

EvalConfig ReadEvalConfig(const fs::path& file, const EvalOverrides& overrides) {
  return ReadFrom(YamlSection::Load(file, overrides.set, overrides.typed), file, file.string(),
                  overrides);
}

EvalConfig ParseEvalConfig(const std::string& text, const fs::path& file,
                           const EvalOverrides& overrides) {
  const std::string called = overrides.called.empty() ? file.string() : overrides.called;
  return ReadFrom(YamlSection::Parse(text, called, overrides.set, overrides.typed), file, called,
                  overrides);
}

Json ToJson(const EvalConfig& config, bool deciding_only) {
  Json tasks = Json::array();
  for (const TaskRequest& task : config.tasks) {
    Json entry = {{"task", task.name}};
    if (task.command) entry["command"] = ToJson(*task.command);
    if (task.limit) entry["limit"] = *task.limit;
    if (task.limit_share) entry["limit"] = *task.limit_share;
    if (task.limit_total) entry["limit_total"] = *task.limit_total;
    if (task.num_fewshot) entry["num_fewshot"] = *task.num_fewshot;
    if (task.repeats) entry["repeats"] = *task.repeats;
    if (!task.sample_metrics.empty()) entry["sample_metrics"] = task.sample_metrics;
    if (!task.generation_kwargs.is_null()) entry["generation_kwargs"] = task.generation_kwargs;
    if (!task.metadata.is_null()) entry["metadata"] = task.metadata;
    if (task.enable_thinking) entry[kEnableThinking] = *task.enable_thinking;
    if (task.think_end.given()) entry[kThinkEndToken] = ToJson(task.think_end);
    if (!task.judge.is_null())
      entry["judge"] = deciding_only ? DecidingJudge(task.judge) : task.judge;
    tasks.push_back(std::move(entry));
  }
  Json json = {{"checkpoint", config.checkpoint.string()},
               {"name", config.name},
               {"tasks", std::move(tasks)},
               {"data_dir", config.data_dir.string()}};
  json["engine"] = {{"name", config.engine.name}};
  json["engine"].update(config.engine.settings);
  if (config.engine.kind().HasSetting("generation_config")) {
    const bool ignored = config.engine.generation_config == GenerationConfig::Use::kIgnore;
    json["engine"].erase("generation_config");
    json["generation_config"] = ignored ? "ignore" : "checkpoint";
  }
  json["seed"] = config.seed;
  json["fewshot_seed"] = config.fewshot_seed;
  json["bootstrap_iters"] = config.bootstrap_iters;
  json["sandbox"] = ToJson(config.metrics.sandbox);
  const PromptsConfig& prompts = config.prompts;
  if (prompts.chat_template || !prompts.system_instruction.empty())
    json["prompts"] = ToJson(prompts);
  if (!config.judge.is_null())
    json["judge"] = deciding_only ? DecidingJudge(config.judge) : config.judge;
  if (deciding_only) return json;
  json["task_dirs"] = Json::array();
  for (const fs::path& dir : config.task_dirs) json["task_dirs"].push_back(dir.string());
  if (config.task_code.allowed != TaskCodeOptions::Allowed::kNo) {
    json["task_code"] = ToString(config.task_code.allowed);
    json["task_python"] = config.task_code.python;
  }
  json["workers"] = {{"devices", config.workers.devices},
                     {"count", config.workers.count},
                     {"threads", config.workers.threads},
                     {"max_attempts", config.workers.max_attempts},
                     {"heartbeat_timeout_s", config.workers.heartbeat_timeout_s},
                     {"stall_timeout_s", config.workers.stall_timeout_s}};
  json["metrics"] = {{"processes", config.metrics.processes},
                     {"max_attempts", config.metrics.max_attempts},
                     {"backlog", config.metrics.backlog_bytes}};
  json["staging"] = {{"root", config.staging.root.string()},
                     {"keep", config.staging.keep_bytes},
                     {"verify", config.staging.verify}};
  const LimitsConfig& limits = config.limits;
  json["limits"] = {{"line", limits.line_bytes},
                    {"file", limits.file_bytes},
                    {"memory", limits.memory_bytes},
                    {"disk", limits.disk_bytes},
                    {"seconds", limits.seconds}};
  json["output"] = {{"dir", config.output_dir.string()}, {"name", config.run_name}};
  if (!config.gates.gates.empty()) json["gates"] = ToJson(config.gates);
  json["cache_dir"] = config.cache_dir.string();
  json["cache_limit"] = config.cache_bytes_max;
  json["state_dir"] = config.state_dir.string();
  return json;
}

}  // namespace evald

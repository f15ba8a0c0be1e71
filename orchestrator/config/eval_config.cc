#include "orchestrator/config/eval_config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kWorkersMax = 1024;

int Cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

fs::path FromHome(const char* variable, const char* below_home) {
  const char* set = std::getenv(variable);
  if (set != nullptr && set[0] == '/') return fs::path(set) / "evald";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && home[0] != '\0' ? home : "/tmp") / below_home / "evald";
}

// A path in eval.yaml is relative to the file's folder; "~/" is the home folder.
fs::path Resolve(const fs::path& file, const std::string& text) {
  if (text.rfind("~/", 0) == 0) {
    const char* home = std::getenv("HOME");
    if (home != nullptr) return fs::path(home) / text.substr(2);
  }
  return (fs::absolute(file).parent_path() / text).lexically_normal();
}

TaskRequest ReadTask(const YamlSection& top, const YAML::Node& node, size_t index) {
  TaskRequest task;
  task.where = top.WhereIn("tasks", node);
  if (node.IsScalar()) {
    task.name = node.Scalar();
    return task;
  }
  YamlSection section = top.Item("tasks", node, index);
  const auto name = section.String("task");
  task.limit = section.Integer("limit", 1, INT64_MAX);
  task.limit_total = section.Integer("limit_total", 1, INT64_MAX);
  if (const auto shots = section.Integer("num_fewshot", 0, 1000)) task.num_fewshot = static_cast<int>(*shots);
  if (const auto repeats = section.Integer("repeats", 1, 100000)) task.repeats = static_cast<int>(*repeats);
  task.generation_kwargs = section.Value("generation_kwargs");
  section.Finish();
  if (!name) section.Refuse("task", "is absent, expected the name of a task, group or tag");
  if (task.limit && task.limit_total) {
    section.Refuse("limit_total", "cannot be given together with 'limit'");
  }
  task.name = *name;
  return task;
}

void ReadTasks(YamlSection& top, EvalConfig* config) {
  const std::vector<YAML::Node> items = top.List("tasks");
  for (size_t i = 0; i < items.size(); ++i) {
    config->tasks.push_back(ReadTask(top, items[i], i));
  }
  if (items.empty()) top.Refuse("tasks", "is absent or empty, expected a list such as [gsm8k, mmlu]");
}

void ReadEngine(YamlSection& top, EvalConfig* config) {
  auto section = top.Section("engine");
  config->engine.where[""] = section ? top.WhereKey("engine") : config->file.string();
  if (!section) return;
  config->engine.name = section->String("name").value_or("native");
  static const std::vector<std::string> kEngines = {"native", "openai", "replay", "emulated"};
  if (std::find(kEngines.begin(), kEngines.end(), config->engine.name) == kEngines.end()) {
    section->Refuse("name", fmt::format("found '{}', expected one of {}{}", config->engine.name,
                                        Join(kEngines, ", "),
                                        Suggestion(config->engine.name, kEngines)));
  }
  config->engine.settings = section->Rest();
  for (const auto& [key, value] : config->engine.settings.items()) {
    config->engine.where[key] = section->WhereKey(key);
  }
  config->engine.where["name"] = section->WhereKey("name");
  if (config->engine.name == "replay" && config->engine.settings.contains("generations") &&
      config->engine.settings["generations"].is_string()) {
    config->engine.settings["generations"] =
        Resolve(config->file, config->engine.settings["generations"].get<std::string>()).string();
  }
}

void ReadWorkers(YamlSection& top, EvalConfig* config) {
  WorkersConfig& workers = config->workers;
  if (auto section = top.Section("workers")) {
    workers.count = static_cast<int>(section->Integer("count", 1, kWorkersMax).value_or(0));
    workers.threads = static_cast<int>(section->Integer("threads", 1, kWorkersMax).value_or(0));
    workers.max_attempts = static_cast<int>(section->Integer("max_attempts", 1, 100).value_or(3));
    workers.heartbeat_timeout_s = section->Number("heartbeat_timeout_s", 2, 86400).value_or(60);
    workers.stall_timeout_s = section->Number("stall_timeout_s", 1, 86400).value_or(1800);
    section->Finish();
  }
  if (workers.count == 0) workers.count = std::max(1, Cores() / 2);
  if (workers.threads == 0) workers.threads = std::max(1, Cores() / workers.count);
}

void ReadMetrics(YamlSection& top, EvalConfig* config) {
  MetricsConfig& metrics = config->metrics;
  if (auto section = top.Section("metrics")) {
    metrics.processes = static_cast<int>(section->Integer("processes", 1, kWorkersMax).value_or(0));
    metrics.max_attempts = static_cast<int>(section->Integer("max_attempts", 1, 100).value_or(3));
    if (auto sandbox = section->Section("sandbox")) {
      const Json value = sandbox->Rest();
      try {
        metrics.sandbox = SandboxOptionsFromJson(value, "metrics.sandbox");
      } catch (const Error& e) {
        section->Refuse("sandbox", e.message());
      }
    }
    section->Finish();
  }
  if (metrics.processes == 0) metrics.processes = Cores();
}

void ReadPlaces(YamlSection& top, EvalConfig* config) {
  const fs::path& file = config->file;
  if (auto section = top.Section("staging")) {
    if (const auto root = section->String("root")) config->staging.root = Resolve(file, *root);
    config->staging.keep_bytes = section->Bytes("keep").value_or(0);
    config->staging.verify = section->Boolean("verify").value_or(false);
    section->Finish();
  }
  if (config->staging.root.empty()) {
    config->staging.root = fmt::format("/dev/shm/evald-{}", ::getuid());
  }
  config->output_dir = Resolve(file, "runs");
  if (auto section = top.Section("output")) {
    if (const auto dir = section->String("dir")) config->output_dir = Resolve(file, *dir);
    config->run_name = section->String("name").value_or("");
    if (config->run_name.find('/') != std::string::npos || config->run_name == "." ||
        config->run_name == "..") {
      section->Refuse("name", "must be one folder's name");
    }
    section->Finish();
  }
  const auto cache = top.String("cache_dir");
  config->cache_dir = cache ? Resolve(file, *cache) : DefaultCacheDir();
  const auto state = top.String("state_dir");
  config->state_dir = state ? Resolve(file, *state) : DefaultStateDir();
}

void ReadInputs(YamlSection& top, const EvalOverrides& overrides, EvalConfig* config) {
  const fs::path& file = config->file;
  if (const auto checkpoint = top.String("checkpoint")) {
    config->checkpoint = Resolve(file, *checkpoint);
    if (!fs::is_directory(config->checkpoint)) {
      top.Refuse("checkpoint", fmt::format("{} is not a folder; expected a checkpoint in Hugging Face layout",
                                           config->checkpoint.string()));
    }
  } else if (config->engine.name == "native") {
    top.Refuse("checkpoint", "is absent; the native engine needs a checkpoint folder");
  }
  config->name = top.String("name").value_or(
      config->checkpoint.empty() ? config->engine.name : config->checkpoint.filename().string());
  if (const auto dir = top.String("data_dir")) config->data_dir = Resolve(file, *dir);
  if (!overrides.data_dir.empty()) config->data_dir = fs::absolute(overrides.data_dir);
  for (const std::string& dir : top.Strings("task_dirs")) {
    config->task_dirs.push_back(Resolve(file, dir));
    if (!fs::is_directory(config->task_dirs.back())) {
      top.Refuse("task_dirs", fmt::format("{} is not a folder", config->task_dirs.back().string()));
    }
  }
}

}  // namespace

fs::path DefaultCacheDir() { return FromHome("XDG_CACHE_HOME", ".cache"); }
fs::path DefaultStateDir() { return FromHome("XDG_STATE_HOME", ".local/state"); }

namespace {

EvalConfig ReadFrom(YamlSection top, const fs::path& file, const EvalOverrides& overrides) {
  EvalConfig config;
  config.file = fs::absolute(file).lexically_normal();
  ReadTasks(top, &config);
  ReadEngine(top, &config);
  ReadInputs(top, overrides, &config);
  ReadWorkers(top, &config);
  ReadMetrics(top, &config);
  ReadPlaces(top, &config);
  config.seed = static_cast<uint64_t>(top.Integer("seed", 0, INT64_MAX).value_or(1234));
  config.fewshot_seed = static_cast<uint64_t>(top.Integer("fewshot_seed", 0, INT64_MAX).value_or(1234));
  config.bootstrap_iters = static_cast<int>(top.Integer("bootstrap_iters", 0, 100000000).value_or(100000));
  if (auto section = top.Section("gates")) config.gates = ReadGates(*section, config.file.parent_path());
  top.Finish();
  return config;
}

}  // namespace

EvalConfig ReadEvalConfig(const fs::path& file, const EvalOverrides& overrides) {
  return ReadFrom(YamlSection::Load(file, overrides.set), file, overrides);
}

EvalConfig ParseEvalConfig(const std::string& text, const fs::path& file, const EvalOverrides& overrides) {
  return ReadFrom(YamlSection::Parse(text, file.string(), overrides.set), file, overrides);
}

Json ToJson(const EvalConfig& config, bool deciding_only) {
  Json tasks = Json::array();
  for (const TaskRequest& task : config.tasks) {
    Json entry = {{"task", task.name}};
    if (task.limit) entry["limit"] = *task.limit;
    if (task.limit_total) entry["limit_total"] = *task.limit_total;
    if (task.num_fewshot) entry["num_fewshot"] = *task.num_fewshot;
    if (task.repeats) entry["repeats"] = *task.repeats;
    if (!task.generation_kwargs.is_null()) entry["generation_kwargs"] = task.generation_kwargs;
    tasks.push_back(std::move(entry));
  }
  Json json = {{"checkpoint", config.checkpoint.string()},
               {"name", config.name},
               {"tasks", std::move(tasks)},
               {"data_dir", config.data_dir.string()}};
  json["engine"] = {{"name", config.engine.name}};
  json["engine"].update(config.engine.settings);
  json["seed"] = config.seed;
  json["fewshot_seed"] = config.fewshot_seed;
  json["bootstrap_iters"] = config.bootstrap_iters;
  json["sandbox"] = ToJson(config.metrics.sandbox);
  if (deciding_only) return json;
  json["task_dirs"] = Json::array();
  for (const fs::path& dir : config.task_dirs) json["task_dirs"].push_back(dir.string());
  json["workers"] = {{"count", config.workers.count},
                     {"threads", config.workers.threads},
                     {"max_attempts", config.workers.max_attempts},
                     {"heartbeat_timeout_s", config.workers.heartbeat_timeout_s},
                     {"stall_timeout_s", config.workers.stall_timeout_s}};
  json["metrics"] = {{"processes", config.metrics.processes},
                     {"max_attempts", config.metrics.max_attempts}};
  json["staging"] = {{"root", config.staging.root.string()},
                     {"keep", config.staging.keep_bytes},
                     {"verify", config.staging.verify}};
  json["output"] = {{"dir", config.output_dir.string()}, {"name", config.run_name}};
  if (!config.gates.gates.empty()) json["gates"] = ToJson(config.gates);
  json["cache_dir"] = config.cache_dir.string();
  json["state_dir"] = config.state_dir.string();
  return json;
}

}  // namespace evald

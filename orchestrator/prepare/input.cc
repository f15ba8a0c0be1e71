#include "orchestrator/prepare/input.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "base/jsonl.h"
#include "engines/engines.h"
#include "evald/error.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInputName = "what is to be prepared";
constexpr const char* kWorks[] = {"check", "describe", "prepare", "judge"};

std::vector<std::string> Texts(const std::vector<fs::path>& paths) {
  return {paths.begin(), paths.end()};
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename T>
std::optional<T> Optional(const Json& json, const std::string& key) {
  return json.at(key).is_null() ? std::nullopt : std::optional<T>(Field<T>(json, key, kInputName));
}

Json ToJson(const TaskRequest& task) {
  return {{"name", task.name},
          {"where", task.where},
          {"limit", OrNull(task.limit)},
          {"limit_total", OrNull(task.limit_total)},
          {"limit_share", OrNull(task.limit_share)},
          {"num_fewshot", OrNull(task.num_fewshot)},
          {"repeats", OrNull(task.repeats)},
          {"sample_metrics", task.sample_metrics},
          {"generation_kwargs", task.generation_kwargs},
          {"enable_thinking", OrNull(task.enable_thinking)},
          {"think_end_token", ToJson(task.think_end)},
          {"judge", task.judge},
          {"command", task.command ? ToJson(*task.command) : Json()},
          {"metadata", task.metadata}};
}

TaskRequest TaskRequestFromJson(const Json& json) {
  return {Field<std::string>(json, "name", kInputName),
          Field<std::string>(json, "where", kInputName),
          Optional<int64_t>(json, "limit"),
          Optional<int64_t>(json, "limit_total"),
          Optional<double>(json, "limit_share"),
          Optional<int>(json, "num_fewshot"),
          Optional<int>(json, "repeats"),
          Field<std::vector<std::string>>(json, "sample_metrics", kInputName),
          json.at("generation_kwargs"),
          Optional<bool>(json, "enable_thinking"),
          ParseThinkEnd(json.at("think_end_token")).value_or(ThinkEnd()),
          json.at("judge"),
          json.at("command").is_null()
              ? std::nullopt
              : std::optional<CommandSpec>(CommandFromJson(json.at("command"), kInputName)),
          json.at("metadata")};
}

Json PromptsToJson(const PromptsConfig& prompts) {
  return {{"chat_template", prompts.chat_template},
          {"template_name", prompts.template_name},
          {"chat_date", ToJson(prompts.chat_date)},
          {"system_instruction", prompts.system_instruction},
          {"fewshot_as_multiturn", OrNull(prompts.fewshot_as_multiturn)},
          {"template_arguments", prompts.template_arguments}};
}

PromptsConfig PromptsFromJson(const Json& json) {
  return {Field<bool>(json, "chat_template", kInputName),
          Field<std::string>(json, "template_name", kInputName),
          ChatDateFromJson(json.at("chat_date")),
          Field<std::string>(json, "system_instruction", kInputName),
          Optional<bool>(json, "fewshot_as_multiturn"),
          Field<Json>(json, "template_arguments", kInputName)};
}

int Processors() { return UsableCores(); }

Json JudgeToJson(const JudgeRequest& request) {
  return {{"policy", ToJsonWithPlaces(request.policy)},
          {"candidate", request.candidate.string()},
          {"results", request.results},
          {"run_status", static_cast<int>(request.run_status)},
          {"problems", request.problems},
          {"page", request.page},
          {"columns", request.columns},
          {"folded", request.folded}};
}

JudgeRequest JudgeFromJson(const Json& json) {
  JudgeRequest request;
  request.policy = GatePolicyFromJson(Field<Json>(json, "policy", kInputName), kInputName);
  request.candidate = Field<std::string>(json, "candidate", kInputName);
  request.results = json.at("results");
  request.run_status = static_cast<ExitStatus>(Field<int>(json, "run_status", kInputName));
  request.problems = Field<std::vector<std::string>>(json, "problems", kInputName);
  request.page = Field<bool>(json, "page", kInputName);
  request.columns = Field<uint64_t>(json, "columns", kInputName);
  request.folded = Field<bool>(json, "folded", kInputName);
  return request;
}

}  // namespace

bool NeedsStaging(const EvalConfig& config) {
  const EngineKind& kind = config.engine.kind();
  if (config.checkpoint.empty() || !kind.takes_weights) return false;
  return GivenServer(kind, config.engine.settings).empty();
}

bool WantsTokens(const EvalConfig& config) {
  return !config.checkpoint.empty() && TakesTokens(config.engine.kind(), config.engine.settings);
}

PreparationInput InputOf(const EvalConfig& config, PreparationInput::Work work) {
  PreparationInput input;
  input.work = work;
  input.checkpoint = config.checkpoint;
  input.weights = NeedsStaging(config);
  input.tokens = WantsTokens(config);
  if (input.weights && config.engine.kind().reads_checkpoint)
    input.max_length = config.engine.settings.value("max_length", int64_t{0});
  if (const auto place = config.engine.where.find("max_length"); place != config.engine.where.end())
    input.max_length_place = place->second + ": key 'engine.max_length'";
  input.tasks = config.tasks;
  input.data_dir = config.data_dir;
  input.task_dirs = config.task_dirs;
  input.task_code = config.task_code;
  input.task_code.memory_bytes = config.limits.memory_bytes;
  input.cache_dir = config.cache_dir;
  input.cache_bytes_max = config.cache_bytes_max;
  input.prompts = config.prompts;
  input.judge_settings = config.judge;
  input.fewshot_seed = config.fewshot_seed;
  input.roots = config.roots;
  input.limits = config.limits;
  input.threads = Processors();
  input.programs_here = config.programs_here;
  input.judge.policy = config.gates;
  return input;
}

PreparationInput InputOf(JudgeRequest request, const ReadRoots& roots, const LimitsConfig& limits) {
  PreparationInput input;
  input.work = PreparationInput::Work::kJudge;
  input.judge = std::move(request);
  input.roots = roots;
  input.limits = limits;
  input.threads = Processors();
  return input;
}

Json ToJson(const PreparationInput& input) {
  Json tasks = Json::array();
  for (const TaskRequest& task : input.tasks) tasks.push_back(ToJson(task));
  return {{"work", kWorks[static_cast<int>(input.work)]},
          {"checkpoint", input.checkpoint.string()},
          {"weights", input.weights},
          {"tokens", input.tokens},
          {"max_length", OrNull(input.max_length)},
          {"max_length_place", input.max_length_place},
          {"tasks", std::move(tasks)},
          {"data_dir", input.data_dir.string()},
          {"task_dirs", Texts(input.task_dirs)},
          {"task_code", ToJson(input.task_code)},
          {"cache_dir", input.cache_dir.string()},
          {"cache_limit", input.cache_bytes_max},
          {"use", input.use.string()},
          {"prompts", PromptsToJson(input.prompts)},
          {"judge_settings", input.judge_settings},
          {"fewshot_seed", input.fewshot_seed},
          {"roots", Texts(input.roots.folders())},
          {"limits",
           {{"line", input.limits.line_bytes},
            {"file", input.limits.file_bytes},
            {"memory", input.limits.memory_bytes},
            {"disk", input.limits.disk_bytes},
            {"seconds", input.limits.seconds}}},
          {"threads", input.threads},
          {"baseline_complete", input.baseline_complete},
          {"programs_here", input.programs_here},
          {"judge", JudgeToJson(input.judge)}};
}

PreparationInput PreparationInputFromJson(const Json& json) {
  PreparationInput input;
  const auto text = [&](const char* key) { return Field<std::string>(json, key, kInputName); };
  const auto paths = [&](const char* key) {
    const auto texts = Field<std::vector<std::string>>(json, key, kInputName);
    return std::vector<fs::path>(texts.begin(), texts.end());
  };
  const auto work = std::find(std::begin(kWorks), std::end(kWorks), text("work"));
  if (work == std::end(kWorks))
    throw Error(ErrorKind::kInput, fmt::format("{}: '{}' is no work", kInputName, text("work")));
  input.work = static_cast<PreparationInput::Work>(work - std::begin(kWorks));
  input.checkpoint = text("checkpoint");
  input.weights = Field<bool>(json, "weights", kInputName);
  input.tokens = Field<bool>(json, "tokens", kInputName);
  input.max_length = Optional<int64_t>(json, "max_length");
  input.max_length_place = text("max_length_place");
  for (const Json& task : json.at("tasks")) input.tasks.push_back(TaskRequestFromJson(task));
  input.data_dir = text("data_dir");
  input.task_dirs = paths("task_dirs");
  input.task_code = TaskCodeFromJson(json.at("task_code"), kInputName);
  input.cache_dir = text("cache_dir");
  input.cache_bytes_max = Field<uint64_t>(json, "cache_limit", kInputName);
  input.use = text("use");
  input.prompts = PromptsFromJson(json.at("prompts"));
  input.judge_settings = json.at("judge_settings");
  input.fewshot_seed = Field<uint64_t>(json, "fewshot_seed", kInputName);
  input.roots = ReadRoots(paths("roots"));
  const Json& limits = json.at("limits");
  input.limits = {
      Field<uint64_t>(limits, "line", kInputName), Field<uint64_t>(limits, "file", kInputName),
      Field<uint64_t>(limits, "memory", kInputName), Field<uint64_t>(limits, "disk", kInputName),
      Field<double>(limits, "seconds", kInputName)};
  input.threads = Field<int>(json, "threads", kInputName);
  input.baseline_complete = Field<bool>(json, "baseline_complete", kInputName);
  input.programs_here = Field<bool>(json, "programs_here", kInputName);
  input.judge = JudgeFromJson(Field<Json>(json, "judge", kInputName));
  return input;
}

}  // namespace evald

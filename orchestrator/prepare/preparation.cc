#include "orchestrator/prepare/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/problems.h"
#include "checkpoint/layout.h"
#include "datasets/known_modules.h"
#include "datasets/task_data.h"
#include "datasets/task_files.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/judge/metric.h"
#include "metrics/program_languages.h"
#include "metrics/scorer.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/prepare/lent_files.h"
#include "orchestrator/prepare/missing.h"
#include "orchestrator/prepare/shared_prefix.h"
#include "orchestrator/report/results.h"
#include "orchestrator/verdict/verdict.h"
#include "prepared/cache.h"
#include "prepared/prepared_task.h"
#include "task_code/math_verifier.h"
#include "task_code/table_reader.h"
#include "tokenizer/tokenizer.h"
#include "worker/native/checkpoint_check.h"

namespace evald {
namespace {

constexpr const char* kPreparedTask = "a prepared task";

// Mean tokens of a document, from the first documents.
void CountTokens(const PreparedTask& prepared, SuiteTask* task) {
  constexpr int64_t kSample = 32;
  constexpr double kBytesPerToken = 4;
  const int64_t count = std::min(kSample, prepared.document_count());
  for (const Request& request : prepared.Requests(0, count)) {
    task->tokens_in += request.context_tokens.empty()
                           ? static_cast<double>(request.context.size()) / kBytesPerToken
                           : static_cast<double>(request.context_tokens.size());
    task->tokens_out_most +=
        request.kind == RequestKind::kGenerateUntil
            ? static_cast<double>(request.sampling.max_gen_toks)
            : static_cast<double>(request.continuation.size()) / kBytesPerToken;
  }
  const double scale =
      static_cast<double>(prepared.repeats()) / static_cast<double>(std::max<int64_t>(1, count));
  task->tokens_in *= scale;
  task->tokens_out_most *= scale;
}

// A misspelt argument, or a switch that the template does not have, would be seen nowhere else.
void WarnOfUnusedArguments(const PreparationInput& input, const ChatTemplate& chat) {
  std::set<std::string> names;
  for (const auto& [name, value] : input.prompts.template_arguments.items()) names.insert(name);
  for (const TaskRequest& task : input.tasks) {
    if (task.enable_thinking) names.insert("enable_thinking");
  }
  for (const std::string& name : names) {
    if (!chat.Mentions(name))
      log::Warn("{}: the chat template does not use '{}', which is set", chat.where(), name);
  }
}

// Makes processes for task code, which get the files of the folders of task files, and those that
// the run lends.
std::function<std::unique_ptr<TaskCode>()> TaskCodeFor(const PreparationInput& input,
                                                       const LentFiles& lent,
                                                       sandbox::BoxMaker* boxes) {
  const auto files = std::make_shared<const TaskFiles>(input.task_dirs, input.roots);
  return [files, lent, boxes, options = input.task_code] {
    auto code = std::make_unique<TaskCode>(options, boxes);
    code->ServeFiles([files, lent](const std::string& path) {
      const auto of_run = lent.Wanted(path);
      return of_run ? *of_run : files->Wanted(path);
    });
    code->AddRoots(files->Folders());
    return code;
  };
}

PrepareOptions OptionsOf(const PreparationInput& input, const PreparationHooks& hooks) {
  PrepareOptions options;
  options.data_dir = input.data_dir;
  options.cache_dir = input.cache_dir;
  options.fewshot_seed = input.fewshot_seed;
  options.cancel = hooks.cancel;
  options.roots = input.roots;
  options.limits = {input.limits.line_bytes, input.limits.file_bytes};
  options.prepared_bytes_max = input.limits.disk_bytes;
  options.doing = hooks.doing;
  const bool calls = input.task_code.allowed != TaskCodeOptions::Allowed::kNo;
  if (hooks.boxes != nullptr && calls) {
    const LentFiles lent(input.checkpoint, input.data_dir, input.roots);
    options.tokenizer_files = lent.TokenizerFiles();
    options.code = TaskCodeFor(input, lent, hooks.boxes);
  }
  options.tables = [boxes = hooks.boxes, code = input.task_code] {
    return std::make_unique<TableReader>(code, boxes);
  };
  options.math = [boxes = hooks.boxes, code = input.task_code] {
    return MathVerifier(code, boxes).versions();
  };
  options.checker = [](const TaskDefinition& task) -> DocumentCheck {
    return [scorer = std::make_shared<const Scorer>(task, nullptr)](
               const PreparedDocument& document) { scorer->Check(document); };
  };
  options.prompts.system_instruction = input.prompts.system_instruction;
  options.prompts.fewshot_as_multiturn = input.prompts.Multiturn();
  if (input.prompts.chat_template) {
    hooks.doing("reading the checkpoint's chat template");
    const ChatTemplate chat =
        ChatTemplate::Load(ReadFolder(input.checkpoint, input.roots), input.prompts.template_name,
                           input.prompts.chat_date);
    WarnOfUnusedArguments(input, chat);
    options.prompts.chat =
        std::make_shared<ChatTemplate>(chat.WithArguments(input.prompts.template_arguments));
  }
  return options;
}

ResolvedTasks Resolve(const PreparationInput& input, const PreparationHooks& hooks) {
  hooks.doing("reading the task files");
  return TaskRegistry(input.task_dirs, input.roots).Resolve(input.tasks);
}

// The engine would refuse every request.
void CheckThinkEnd(const LeafTask& leaf, const TaskDefinition& task, const Tokenizer& tokenizer) {
  const Json thinking = task.sources.value("thinking", Json::object());
  const Json end = thinking.value("think_end_token", Json());
  const std::string wrong =
      end.is_number_integer() ? WrongWithTokenId(tokenizer, end.get<int32_t>()) : "";
  if (wrong.empty()) return;
  throw Error(ErrorKind::kInput, fmt::format("task '{}': think_end_token: {}", leaf.name, wrong),
              "name an id of the checkpoint's tokenizer, or the text of the token");
}

SuiteTask PrepareOne(const LeafTask& leaf, const PrepareOptions& options,
                     const Tokenizer* tokenizer, const PreparationInput& input) {
  SuiteTask task;
  const int64_t begin = MonotonicMicros();
  task.prepared = PrepareTask(leaf, options);
  PreparedTask prepared(task.prepared);
  task.definition = TaskFromJson(prepared.task(), (task.prepared / "task.json").string());
  task.request = RequestOf(leaf);
  // So that an unknown metric is found now, and not after hours
  const Scorer scorable(task.definition, nullptr);
  if (input.programs_here) RequireProgramLanguages(task.definition, &prepared);
  if (tokenizer != nullptr) {
    CheckThinkEnd(leaf, task.definition, *tokenizer);
    options.doing(fmt::format("task '{}': making tokens", leaf.name));
    task.tokenizer_key = tokenizer->key();
    prepared.MakeTokens(
        task.tokenizer_key, [&](Request* request) { EncodeRequest(*tokenizer, request); },
        input.threads);
  }
  task.documents = prepared.document_count();
  task.requests = prepared.request_count() * prepared.repeats();
  if (task.requests > kAnswersPerTaskMax) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("task '{}' has {} answers ({} requests, {} repeats), expected at most {}",
                    leaf.name, task.requests, prepared.request_count(), prepared.repeats(),
                    kAnswersPerTaskMax),
        "give the task a limit, or ask for fewer repeats");
  }
  CountTokens(prepared, &task);
  task.prefix_tokens = SharedPrefixTokens(prepared);
  task.prepare_s = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  return task;
}

// Refuses a task with a judge if the run names none, or one that does not fit.
void CheckJudges(const PreparationInput& input, const LeafTask& leaf, const TaskDefinition& task) {
  if (!UsesJudge(task)) return;
  try {
    const JudgeSettings settings = JudgeFor(input.judge_settings, input.tasks, RequestOf(leaf));
    for (const MetricSpec& spec : task.metrics) {
      if (spec.function == kJudgeFunction) CheckJudge(JudgeSpecOf(spec), settings);
    }
  } catch (Error& e) {
    throw e.AddContext(fmt::format("{}: task '{}'", leaf.where, task.name));
  }
}

// The entry that a task's results will have, with zeros for values. Throws Error(kInput) for an
// unknown metric, filter or function.
Json ExpectedEntry(const LeafTask& leaf, const TaskDefinition& task) {
  Json entry = {{"name", task.name}, {"alias", task.alias}, {"sample_len", 1}};
  try {
    for (const auto& [metric, filter] : Scorer(task, nullptr).Metrics())
      entry[metric + "," + filter] = 0.0;
  } catch (Error& e) {
    e.AddContext(leaf.where);
    throw;
  }
  return entry;
}

// Every request would be refused. `context` is in tokens, 0 if it is not known.
void CheckLength(const PreparationInput& input, const LeafTask& leaf, int64_t context) {
  const int64_t most = MostTokensOfAnswer(leaf);
  if (context == 0 || most < context) return;
  const auto asked =
      std::find_if(input.tasks.begin(), input.tasks.end(), [&](const TaskRequest& task) {
        return task.name == RequestOf(leaf) && !task.generation_kwargs.is_null();
      });
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: task '{}': max_gen_toks ({}) leaves nothing of the context length "
                  "({}) for the prompt",
                  asked == input.tasks.end() ? leaf.where : asked->where, leaf.name, most, context),
      "lower the task's max_gen_toks, or use a model with a longer context");
}

// Whether what shows at the beginnings of a task's files can be looked at by this process alone:
// it starts no other, so no functions of the task's own and no tables.
bool CanLook(const LeafTask& leaf, bool runs_code, const std::vector<SplitFound>& splits) {
  const std::vector<std::string> functions = FunctionsOf(leaf);
  const bool own =
      runs_code && std::any_of(functions.begin(), functions.end(),
                               [](const std::string& name) { return IsOwnFunction(name); });
  return !own && std::none_of(splits.begin(), splits.end(), [](const SplitFound& split) {
    return split.tables || split.failure;
  });
}

// What the checks of a run's tasks share.
struct TaskChecks {
  const PreparationInput& input;
  const PrepareOptions* look;  ///< for looks at data; null: data is read elsewhere
  int64_t context;             ///< of the model, in tokens; 0: not known
};

// Adds why a task cannot be prepared or scored, as far as its files say so, and its entry in the
// results.
void CheckLeaf(const TaskChecks& checks, const LeafTask& leaf, ResultsInput* results,
               Missing* missing) {
  const PreparationInput& input = checks.input;
  const bool runs_code = input.task_code.allowed != TaskCodeOptions::Allowed::kNo;
  results->tasks.push_back(DefineTask(leaf));
  TaskDefinition& task = results->tasks.back();
  if (runs_code) task.sources["code"] = Json::object();  // its functions will run
  bool sound = true;
  const auto check = [&](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      if (ExitStatusFor(error.kind()) != ExitStatus::kUsage) throw;
      missing->Add(leaf.name, error);
      sound = false;
    }
  };
  check([&] { CheckJudges(input, leaf, task); });
  check([&] {
    if (!runs_code) CheckDocumentFunctions(leaf);
    results->entries[leaf.name] = ExpectedEntry(leaf, task);
  });
  check([&] { CheckLength(input, leaf, checks.context); });
  const std::vector<SplitFound> splits = FindTaskData(leaf, input.data_dir, input.roots);
  for (const SplitFound& split : splits) missing->Add(leaf.name, split);
  if (sound && checks.look != nullptr && CanLook(leaf, runs_code, splits))
    check([&] { LookAtTask(leaf, *checks.look); });
}

// Refuses tasks and gates that would fail only when data is read, or when results are scored and
// judged.
void CheckTasks(const TaskChecks& checks, const ResolvedTasks& resolved,
                const PreparationHooks& hooks) {
  const PreparationInput& input = checks.input;
  hooks.doing("checking the tasks");
  ResultsInput results;
  results.groups = resolved.groups;
  Json truncated = Json::object();
  Missing missing;
  for (const LeafTask& leaf : resolved.leaves) {
    CheckLeaf(checks, leaf, &results, &missing);
    const TaskDefinition& task = results.tasks.back();
    if (input.programs_here) RequireProgramLanguages(task, nullptr);
    if (IsOwnFunction(task.process_results)) results.evald[kMetricsByFunction].push_back(leaf.name);
    if (task.output_type == "generate_until")
      truncated[leaf.name] = {{"answers", 1}, {"truncated", 0}};
  }
  missing.ThrowIfAny(resolved.leaves.size());
  results.evald["truncated_answers"] = std::move(truncated);
  if (input.judge.policy.gates.empty() && input.judge.policy.baseline.empty()) return;
  hooks.doing("checking the gates");
  CheckGates(input.judge.policy, BuildResults(results), input.roots, input.baseline_complete);
}

Json DescribeCheckpoint(const PreparationInput& input, const PreparationHooks& hooks) {
  if (input.checkpoint.empty()) return nullptr;
  hooks.doing("looking at the checkpoint");
  const CheckpointLayout layout = ReadCheckpointLayout(ReadFolder(input.checkpoint, input.roots));
  CheckShards(layout);
  return {{"path", input.checkpoint.string()},
          {"bytes", layout.total_bytes},
          {"files", layout.files.size()},
          {"shards", layout.shards}};
}

// For people: the engine of this run asks for no weights, so none need be there.
void DescribeIfWhole(const PreparationInput& input, const PreparationHooks& hooks, Json* found) {
  try {
    (*found)["checkpoint"] = DescribeCheckpoint(input, hooks);
  } catch (const Error& error) {
    log::Debug("{}", error.what());
  }
}

// What the checks of a run's input leave.
struct Checked {
  ResolvedTasks resolved;
  PrepareOptions options;
  std::unique_ptr<Tokenizer> tokenizer;  ///< null if the run makes no tokens
};

// Checks the checkpoint, the tokenizer, the chat template, the tasks and the gates, and throws all
// that is wrong with them at once. `looks`: at the beginnings of data files, too.
Checked Check(const PreparationInput& input, const PreparationHooks& hooks, bool looks,
              Json* found) {
  Checked checked;
  ProblemList problems;
  const ReadFolder folder =
      input.checkpoint.empty() ? ReadFolder() : ReadFolder(input.checkpoint, input.roots);
  const bool tasks = problems.Try([&] { checked.resolved = Resolve(input, hooks); });
  const bool whole = !input.weights || problems.Try([&] {
    (*found)["checkpoint"] = DescribeCheckpoint(input, hooks);
  });
  if (!input.weights && !looks) DescribeIfWhole(input, hooks, found);
  int64_t context = 0;
  if (whole && input.max_length) {
    hooks.doing("looking at the checkpoint's model");
    problems.Try([&] {
      try {
        context = CheckNativeCheckpoint(folder, *input.max_length);
      } catch (Error& error) {  // of the checkpoint, but for the setting
        throw error.kind() == ErrorKind::kUsage ? error.AddContext(input.max_length_place) : error;
      }
    });
  }
  if (input.tokens && (!input.weights || folder.HasFile("tokenizer.json"))) {
    hooks.doing("reading the checkpoint's tokenizer");
    problems.Try([&] { checked.tokenizer = Tokenizer::Load(folder); });
  }
  const bool prompts = problems.Try([&] { checked.options = OptionsOf(input, hooks); });
  PrepareOptions look = checked.options;
  look.math = nullptr;  // it would start a process
  if (tasks)
    problems.Try([&] {
      CheckTasks({input, looks && prompts ? &look : nullptr, context}, checked.resolved, hooks);
    });
  problems.ThrowIfAny();
  const std::vector<LeafTask>& leaves = checked.resolved.leaves;
  (*found)["programs"] = std::any_of(leaves.begin(), leaves.end(), RunsPrograms);
  return checked;
}

Json DescribePrompts(const PromptOptions& prompts) {
  Json out = {{"system_instruction",
               prompts.system_instruction.empty() ? Json() : Json(prompts.system_instruction)},
              {"chat_template", nullptr}};
  if (prompts.chat == nullptr) return out;
  out["chat_template"] = {{"from", prompts.chat->where()},
                          {"sha", Sha256Hex(prompts.chat->text())}};
  out["fewshot_as_multiturn"] = prompts.fewshot_as_multiturn;
  return out;
}

}  // namespace

Suite PrepareSuite(const PreparationInput& input, const PreparationHooks& hooks) {
  Suite suite;
  std::unique_ptr<Tokenizer> tokenizer;
  const ResolvedTasks resolved = Resolve(input, hooks);
  if (input.tokens) {
    hooks.doing("reading the checkpoint's tokenizer");
    tokenizer = Tokenizer::Load(ReadFolder(input.checkpoint, input.roots));
    suite.tokenizer_hash = tokenizer->file_hash();
  }
  PrepareOptions options = OptionsOf(input, hooks);
  CacheKeeper cache(input.cache_dir, input.use, input.cache_bytes_max);
  options.holds = [&cache](const std::string& key) { cache.Hold(key); };
  if (options.prompts.chat != nullptr) suite.chat_template = options.prompts.chat->text();
  suite.groups = resolved.groups;
  for (const LeafTask& leaf : resolved.leaves) CheckJudges(input, leaf, DefineTask(leaf));
  hooks.progress(0, resolved.leaves.size());
  for (const LeafTask& leaf : resolved.leaves) {
    if (hooks.cancel != nullptr && *hooks.cancel)
      throw Error(ErrorKind::kInfrastructure, "preparation was cancelled");
    suite.tasks.push_back(PrepareOne(leaf, options, tokenizer.get(), input));
    cache.MakeSpace(suite.tasks.back().prepared.filename().string(), leaf.name);
    hooks.progress(suite.tasks.size(), resolved.leaves.size());
  }
  return suite;
}

Json CheckInput(const PreparationInput& input, const PreparationHooks& hooks) {
  Json found = {{"tasks", Json::array()}, {"groups", Json::array()}, {"checkpoint", nullptr}};
  const Checked checked = Check(input, hooks, true, &found);
  for (const LeafTask& leaf : checked.resolved.leaves) found["tasks"].push_back(leaf.name);
  for (const GroupDefinition& group : checked.resolved.groups)
    found["groups"].push_back(group.name);
  return found;
}

Json JudgeInput(const PreparationInput& input, const PreparationHooks& hooks) {
  return ToJson(JudgeResults(input.judge, input.roots, hooks.doing));
}

Json DescribeInput(const PreparationInput& input, const PreparationHooks& hooks) {
  Json found = {{"checkpoint", nullptr}, {"tasks", Json::array()}};
  const Checked checked = Check(input, hooks, false, &found);
  found["prompts"] = DescribePrompts(checked.options.prompts);
  ProblemList problems;
  for (const LeafTask& leaf : checked.resolved.leaves) {
    std::optional<TaskDefinition> described;
    if (!problems.Try([&] { described = DescribeTask(leaf, checked.options); })) continue;
    const TaskDefinition& task = *described;
    if (checked.tokenizer != nullptr)
      problems.Try([&] { CheckThinkEnd(leaf, task, *checked.tokenizer); });
    found["tasks"].push_back({{"name", task.name},
                              {"output_type", task.output_type},
                              {"num_fewshot", task.num_fewshot},
                              {"repeats", task.repeats},
                              {"documents", task.effective_documents},
                              {"of", task.original_documents},
                              {"runs_code", task.unsafe_code},
                              {"judged", UsesJudge(task)}});
  }
  problems.ThrowIfAny();
  return found;
}

Json ToJson(const SuiteTask& task) {
  return {{"definition", ToJson(task.definition)},
          {"key", task.prepared.filename().string()},
          {"request", task.request},
          {"tokenizer_key", task.tokenizer_key},
          {"documents", task.documents},
          {"requests", task.requests},
          {"tokens_in", task.tokens_in},
          {"prefix_tokens", task.prefix_tokens},
          {"tokens_out_most", task.tokens_out_most},
          {"prepare_s", task.prepare_s}};
}

SuiteTask SuiteTaskFromJson(const Json& json) {
  SuiteTask task;
  task.definition = TaskFromJson(Field<Json>(json, "definition", kPreparedTask), kPreparedTask);
  task.prepared = Field<std::string>(json, "key", kPreparedTask);
  task.request = Field<std::string>(json, "request", kPreparedTask);
  task.tokenizer_key = Field<std::string>(json, "tokenizer_key", kPreparedTask);
  task.documents = Field<int64_t>(json, "documents", kPreparedTask);
  task.requests = Field<int64_t>(json, "requests", kPreparedTask);
  task.tokens_in = Field<double>(json, "tokens_in", kPreparedTask);
  task.prefix_tokens = Field<double>(json, "prefix_tokens", kPreparedTask);
  task.tokens_out_most = Field<double>(json, "tokens_out_most", kPreparedTask);
  task.prepare_s = Field<double>(json, "prepare_s", kPreparedTask);
  return task;
}

}  // namespace evald

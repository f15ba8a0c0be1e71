#include "orchestrator/run/run_results.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/print.h"
#include "base/text.h"
#include "metrics/aggregate.h"
#include "metrics/line_index.h"
#include "metrics/scoring/score_number.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/report/results.h"

namespace evald {
namespace {

// Requests whose prompts lost tokens, by task, from files that count.
Json TruncatedPrompts(const RunResultsInput& input) {
  Json truncated = Json::object();
  for (const SuiteTask& task : input.suite.tasks) {
    const std::string& name = task.definition.name;
    const auto generated = input.record.generated.find(name);
    if (generated == input.record.generated.end()) continue;
    std::set<size_t> files;
    for (const auto& [document, file] : generated->second) files.insert(file);
    int64_t count = 0;
    for (const size_t file : files) count += input.record.generations[file].truncated;
    truncated[name] = count;
  }
  return truncated;
}

// task -> filter -> reason -> answers that were scored as the filter's fallback; without empty
// entries.
Json FallbacksOf(const RunResultsInput& input) {
  Json fallbacks = Json::object();
  for (const auto& [task, result] : input.finished) {
    if (!result.fallbacks.empty())
      fallbacks[input.suite.tasks[task].definition.name] = result.fallbacks;
  }
  return fallbacks;
}

// Reasons of one kind, and the answers that they count.
struct CountedReasons {
  int64_t sum = 0;
  std::vector<std::string> reasons;

  void Show(const std::string& where, const char* what) const {
    if (sum == 0) return;
    Print("{}: {} answer{} {} ({})\n", where, sum, sum == 1 ? " was" : "s were", what,
          Join(reasons, ", "));
  }
};

// "gsm8k, filter strict: 3 answers were scored as the filter's fallback (step limit 2, no text 1)"
// "aime24, filter none: 1 answer was counted as wrong without a comparison (math_verify: time limit
// 1)"
void PrintFallbacks(const Json& fallbacks) {
  for (const auto& [task, filters] : fallbacks.items()) {
    for (const auto& [filter, counts] : filters.items()) {
      CountedReasons filtered, compared;
      for (const auto& [why, count] : counts.items()) {
        CountedReasons& all = why.starts_with("math_verify: ") ? compared : filtered;
        all.sum += count.get<int64_t>();
        all.reasons.push_back(fmt::format("{} {}", why, count.get<int64_t>()));
      }
      const std::string where = fmt::format("{}, filter {}", task, filter);
      filtered.Show(where, "scored as the filter's fallback");
      compared.Show(where, "counted as wrong without a comparison");
    }
  }
}

// task -> {"answers", "truncated", "share"} for each task that generates text.
Json TruncatedAnswers(const RunResultsInput& input) {
  Json tasks = Json::object();
  for (const auto& [task, result] : input.finished) {
    if (result.texts == 0) continue;
    const double share =
        static_cast<double>(result.truncated_answers) / static_cast<double>(result.texts);
    tasks[input.suite.tasks[task].definition.name] = {
        {"answers", result.texts}, {"truncated", result.truncated_answers}, {"share", share}};
  }
  return tasks;
}

// "gsm8k: 12 of 80 answers (15.0 %) were cut off at max_gen_toks, ..."
void PrintTruncatedAnswers(const Json& tasks) {
  constexpr double kWarnShare = 0.02;
  for (const auto& [task, counts] : tasks.items()) {
    const auto share = counts["share"].get<double>();
    if (share < kWarnShare) continue;
    Print(
        "{}: {} of {} answers ({:.1f} %) are truncated: they ran into max_gen_toks and were scored "
        "as far as they go; raise max_gen_toks if the model should have come to an end\n",
        task, counts["truncated"].get<int64_t>(), counts["answers"].get<int64_t>(), 100 * share);
  }
}

// task -> what was asked for: {"enable_thinking", "think_end_token"}; without empty entries.
Json ThinkingOf(const RunResultsInput& input) {
  Json tasks = Json::object();
  for (const SuiteTask& task : input.suite.tasks) {
    const Json thinking = task.definition.sources.value("thinking", Json());
    if (thinking.is_object()) tasks[task.definition.name] = thinking;
  }
  return tasks;
}

// What the tasks' own Python functions used: {"tasks": {name: {"python", "packages": key,
// "files"}}, "packages": {key: {name: version}}}; {} if no task has any.
Json TaskCodeOf(const RunResultsInput& input) {
  Json all = Json::object();
  for (const SuiteTask& task : input.suite.tasks) {
    if (!UsesTaskCode(task.definition)) continue;
    const Json& code = task.definition.sources.at("code");
    const std::string key = Sha256Hex(code.at("packages").dump()).substr(0, 12);
    all["tasks"][task.definition.name] = {
        {"python", code.at("python")}, {"packages", key}, {"files", code.at("files")}};
    all["packages"][key] = code.at("packages");
  }
  return all;
}

// task -> what compared its answers of mathematics: {"python", "packages"}; without empty entries.
Json MathVerifyOf(const RunResultsInput& input) {
  Json tasks = Json::object();
  for (const SuiteTask& task : input.suite.tasks) {
    const Json versions = task.definition.sources.value("math_verify", Json());
    if (versions.is_object()) tasks[task.definition.name] = versions;
  }
  return tasks;
}

// What the answers to the scored documents of an unfinished task took. A file that cannot be read
// counts for nothing: no score depends on this.
JudgeUsage UsageSoFar(const RunResultsInput& input, const std::string& task) {
  JudgeUsage usage;
  const auto scored = input.record.scored.find(task);
  if (scored == input.record.scored.end()) return usage;
  std::map<size_t, std::vector<int64_t>> documents;  // by file
  for (const auto& [document, file] : scored->second) documents[file].push_back(document);
  for (const auto& [file, list] : documents) {
    try {
      const ScoreReader scores(input.directory.path() / input.record.scores.at(file).path);
      for (const int64_t document : list) {
        const ScoredDocument score = scores.ReadNumbers(document);
        if (score.judge) usage += *score.judge;
      }
    } catch (const Error& e) {
      log::Warn("task {}: what its judge took is not known in full: {}", task, e.what());
    }
  }
  return usage;
}

// What the judge of a task is, and what its answers took, so far for an unfinished task; without
// tasks that have none.
Json JudgesOf(const RunResultsInput& input) {
  Json judges = Json::object();
  for (size_t task = 0; task < input.suite.tasks.size(); ++task) {
    const SuiteTask& of = input.suite.tasks[task];
    if (!UsesJudge(of.definition)) continue;
    const auto finished = input.finished.find(task);
    const JudgeUsage usage = finished != input.finished.end()
                                 ? finished->second.judge
                                 : UsageSoFar(input, of.definition.name);
    if (finished == input.finished.end() && usage == JudgeUsage()) continue;
    const JudgeSettings settings = JudgeFor(input.config.judge, input.config.tasks, of.request);
    Json& judge =
        judges[of.definition.name] = {{"model", settings.model}, {"base_url", settings.base_url}};
    if (settings.max_tokens) judge["max_tokens"] = *settings.max_tokens;
    if (settings.temperature) judge["temperature"] = *settings.temperature;
    judge.update(ToJson(usage));
  }
  return judges;
}

// "essays: the judge MODEL gave 120 answers (34000 tokens in, 2100 out); 40 were kept ..."
void PrintJudges(const Json& judges) {
  for (const auto& [task, judge] : judges.items()) {
    const auto count = [&](const char* key) { return judge.value(key, int64_t{0}); };
    std::string kept, unparsed;
    if (count("cached") > 0) {
      kept = fmt::format("; {} more were kept from before ({} tokens in, {} out)", count("cached"),
                         count("cached_tokens_in"), count("cached_tokens_out"));
    }
    if (count("unparsed") > 0)
      unparsed =
          fmt::format("; {} verdicts could not be read and count as 'unparsed'", count("unparsed"));
    Print("{}: the judge {} gave {} answers ({} tokens in, {} out){}{}\n", task,
          judge.value("model", ""), count("requests"), count("tokens_in"), count("tokens_out"),
          kept, unparsed);
  }
}

// task -> documents for which the model gave no number; without empty entries.
Json UndefinedOf(const RunResultsInput& input) {
  Json undefined = Json::object();
  for (const auto& [task, result] : input.finished) {
    if (result.undefined > 0) undefined[input.suite.tasks[task].definition.name] = result.undefined;
  }
  return undefined;
}

// "lambada: 3 documents have a NaN log-likelihood, or text chosen among NaN: ..."
void PrintUndefined(const Json& undefined) {
  for (const auto& [task, count] : undefined.items()) {
    const auto documents = count.get<int64_t>();
    Print(
        "{}: {} document{} a NaN log-likelihood, or text chosen among NaN: the checkpoint's "
        "weights hold NaN or "
        "infinite values, or overflow\n",
        task, documents, documents == 1 ? " has" : "s have");
  }
}

Json ToJson(const WorkDone& work) {
  return {
      {"requests", work.requests}, {"tokens_in", work.tokens_in}, {"tokens_out", work.tokens_out}};
}

Json Work(const RunResultsInput& input) {
  Json work = ToJson(WorkOf(input.record));
  work["earlier"] = ToJson(input.earlier);
  return work;
}

// "120 requests in 4.1 s". For a resumed run it also names the requests that the time does not
// cover.
std::string Effort(const Json& work, double seconds) {
  const auto requests = work["requests"].get<int64_t>(),
             earlier = work["earlier"]["requests"].get<int64_t>();
  if (earlier == 0) return fmt::format("{} requests in {}", requests, HumanSeconds(seconds));
  return fmt::format("{} requests, {} of them before it was resumed and {} in {}", requests,
                     earlier, requests - earlier, HumanSeconds(seconds));
}

Json Facts(const RunResultsInput& input) {
  Json incomplete = Json::array();
  for (size_t t = 0; t < input.suite.tasks.size(); ++t) {
    if (input.finished.count(t) == 0) incomplete.push_back(input.suite.tasks[t].definition.name);
  }
  double share = 0;
  for (const auto& [device, value] : input.device_shares)
    share += value / static_cast<double>(input.device_shares.size());
  return {{"run", input.directory.id()},
          {"version", input.directory.record().value("evald_version", "")},
          {"fingerprint", input.fingerprint},
          {"engine", input.engine},
          {"devices", input.directory.record().value("devices", Json::object())},
          {"set_aside", input.directory.record().value("set_aside", Json::object())},
          {"isolation", input.isolation},
          {"truncated_prompts", TruncatedPrompts(input)},
          {"truncated_answers", TruncatedAnswers(input)},
          {"thinking", ThinkingOf(input)},
          {"task_code", TaskCodeOf(input)},
          {"math_verify", MathVerifyOf(input)},
          {"fallbacks", FallbacksOf(input)},
          {"undefined", UndefinedOf(input)},
          {"judge", JudgesOf(input)},
          {"work", Work(input)},
          {"generation", input.generation},
          {"device_share", share},
          {"device_shares", input.device_shares},
          {"complete", incomplete.empty() && input.problems.empty()},
          {"incomplete", incomplete},
          {"problems", input.problems}};
}

// The task's configuration as the harness reports it. Its generation_kwargs also show settings in
// force from elsewhere: the checkpoint's, and transformers' top_k.
Json ConfigInForce(const Json& config, const Json& in_force) {
  Json merged = config;
  if (!merged.contains("generation_kwargs") || !merged["generation_kwargs"].is_object())
    return merged;
  Json& kwargs = merged["generation_kwargs"];
  for (const auto& [key, value] : in_force.items()) {
    const bool by_default = key == "do_sample" || key == "eos_token_id" ||
                            (key == "temperature" && value == 1.0) ||
                            (key == "top_p" && value == 1.0) || (key == "top_k" && value == 0);
    if (!by_default && !kwargs.contains(key)) kwargs[key] = value;
  }
  return merged;
}

// The harness's model_args, as far as evald has them.
Json ModelArguments(const EvalConfig& config) {
  Json arguments = {{"pretrained", config.checkpoint.string()}};
  const EngineConfig& engine = config.engine;
  if (engine.enable_thinking) arguments["enable_thinking"] = *engine.enable_thinking;
  if (engine.think_end.given()) arguments["think_end_token"] = ToJson(engine.think_end);
  if (!config.prompts.template_arguments.empty())
    arguments["chat_template_args"] = config.prompts.template_arguments;
  return arguments;
}

Json HarnessConfig(const EvalConfig& config) {
  Json limit = nullptr;
  for (const TaskRequest& task : config.tasks) {
    if (task.limit) limit = *task.limit;
    if (task.limit_share) limit = *task.limit_share;
  }
  return {{"model", config.engine.name},
          {"model_args", ModelArguments(config)},
          {"limit", limit},
          {"bootstrap_iters", config.bootstrap_iters},
          {"gen_kwargs", nullptr},
          {"random_seed", config.seed},
          {"fewshot_seed", config.fewshot_seed}};
}

// The facts that the harness keeps about how prompts were written.
Json Prompts(const RunResultsInput& input) {
  const PromptsConfig& prompts = input.config.prompts;
  const std::optional<std::string>& chat_template = input.suite.chat_template;
  Json out = Json::object();
  if (!prompts.system_instruction.empty()) out["system_instruction"] = prompts.system_instruction;
  if (prompts.fewshot_as_multiturn || chat_template) {
    out["fewshot_as_multiturn"] = prompts.Multiturn();
  }
  if (chat_template) out["chat_template"] = *chat_template;
  return out;
}

}  // namespace

WorkDone WorkOf(const RunRecord& record) {
  WorkDone work;
  for (const CommittedFile& file : record.generations) {
    work.requests += file.requests;
    work.tokens_in += file.tokens_in;
    work.tokens_out += file.tokens_out;
  }
  return work;
}

Json BuildRunResults(const RunResultsInput& input) {
  ResultsInput results;
  Json entries = Json::object();
  for (size_t t = 0; t < input.suite.tasks.size(); ++t) {
    const auto finished = input.finished.find(t);
    if (finished == input.finished.end()) continue;
    const TaskDefinition& task = input.suite.tasks[t].definition;
    results.tasks.push_back(task);
    const auto in_force = input.generation.find(task.name);
    if (in_force != input.generation.end()) {
      results.tasks.back().config = ConfigInForce(task.config, in_force->second);
    }
    results.entries[task.name] = finished->second.entry;
    results.task_hashes[task.name] = finished->second.hash;
  }
  // Groups are reported only if all tasks are.
  if (results.tasks.size() == input.suite.tasks.size()) results.groups = input.suite.groups;
  results.config = HarnessConfig(input.config);
  results.prompts = Prompts(input);
  results.model_source = input.config.engine.name;
  results.model_name = input.config.name;
  results.date = input.directory.record().value("created", 0.0);
  results.seconds = input.seconds;
  results.evald = Facts(input);
  return BuildResults(results);
}

Json HeadlineScore(const Json& entry) {
  for (const auto& [key, value] : entry.items()) {
    const size_t comma = key.find(',');
    if (comma == std::string::npos || key.find("_stderr") != std::string::npos ||
        !IsScoreNumber(value))
      continue;
    const std::string metric = key.substr(0, comma), filter = key.substr(comma + 1);
    const Json error = entry.value(metric + "_stderr," + filter, Json());
    return {{"metric", metric},
            {"filter", filter},
            {"value", value},
            {"stderr", error.is_number() ? error : Json()}};
  }
  return nullptr;
}

std::string Headline(const TaskDefinition& task, const Json& entry) {
  const Json score = HeadlineScore(entry);
  if (score.is_null()) return "done";
  const std::string filter =
      task.filters.size() > 1 ? fmt::format(" ({})", score["filter"].get<std::string>()) : "";
  return fmt::format("{}{} {:.4f}", score["metric"].get<std::string>(), filter,
                     NumberFromScore(score["value"]));
}

void PrintOutcome(const RunOutcome& outcome, const EvalConfig& config, bool json,
                  const Json& verdict) {
  const bool complete = outcome.status == ExitStatus::kDone;
  if (json) {
    Json document = outcome.results.is_null() ? Json::object() : outcome.results;
    if (!outcome.directory.empty()) document["run_directory"] = outcome.directory.string();
    document["exit_status"] = static_cast<int>(outcome.status);
    if (!verdict.is_null()) {
      document["verdict"] = verdict;
      document["exit_status"] = verdict["exit_status"];
    }
    if (!complete) document["error"] = Join(outcome.problems, "; ");
    fmt::print("{}\n", ToLine(document));
  } else if (!outcome.results.is_null() && !outcome.results["results"].empty()) {
    const Json& facts = outcome.results["evald"];
    PrintLines(ResultsTable(outcome.results));
    Print("\n{}: {}; the devices computed {:.1f} % of the time\n", config.name,
          Effort(facts["work"], outcome.seconds), 100 * outcome.device_share);
    for (const auto& [task, count] : facts["truncated_prompts"].items()) {
      if (count.get<int64_t>() > 0)
        Print("{}: {} prompts were cut from the left to fit the context\n", task,
              count.get<int64_t>());
    }
    PrintTruncatedAnswers(facts.value("truncated_answers", Json::object()));
    PrintFallbacks(facts.value("fallbacks", Json::object()));
    PrintUndefined(facts.value("undefined", Json::object()));
    PrintJudges(facts.value("judge", Json::object()));
    if (facts["engine"].value("fast", false)) {
      Print("Computed with 'fast': the last bits may depend on how requests were batched.\n");
    }
    if (facts["engine"].value("emulated", false))
      Print("The answers are emulated: these are not a model's scores.\n");
    if (config.metrics.sandbox.unsafe) Print("The model's code ran WITHOUT isolation (unsafe).\n");
  }
  std::fflush(stdout);
  if (complete) {
    if (!json && !outcome.directory.empty())
      Print("results: {}\n", (outcome.directory / "results.json").string());
    return;
  }
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < std::min(kShown, outcome.problems.size()); ++i) {
    Print(stderr, "evald: error: {}\n", outcome.problems[i]);
  }
  if (outcome.problems.size() > kShown)
    Print(stderr, "evald: and {} more, in run.json\n", outcome.problems.size() - kShown);
  if (outcome.has_incomplete_results) {
    Print(stderr, "evald: the results of the tasks that were finished: {}\n",
          (outcome.directory / kIncompleteResults).string());
  }
  if (outcome.status == ExitStatus::kIncomplete && !outcome.directory.empty()) {
    Print(stderr,
          "evald: the run is incomplete; what is done is kept in {}\n"
          "evald: finish it with the same command and --resume\n",
          outcome.directory.string());
  }
}

}  // namespace evald

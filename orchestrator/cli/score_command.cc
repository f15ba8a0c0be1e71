#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/cores.h"
#include "base/names.h"
#include "base/own_folder.h"
#include "base/print.h"
#include "base/text.h"
#include "engines/engines.h"
#include "metrics/generations_input.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/prepare/preparer.h"
#include "orchestrator/run/run_results.h"
#include "orchestrator/service/foreground.h"
#include "orchestrator/verdict/report_files.h"

namespace evald::cli {
namespace fs = std::filesystem;
namespace {

struct ScoreFlags {
  std::string task;
  std::string generations;
  std::string data_dir;
  std::vector<std::string> task_dirs;
  std::string output;
  int64_t limit = 0;
  int processes = 0;
  bool unsafe = false;
  bool allow_task_code = false;
  std::string task_python;
  std::string judge_url, judge_model, judge_key_env;
};

// A temporary folder, removed with its content.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (TmpFolder() / "evald-score-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(ErrorKind::kInfrastructure, fmt::format("{}: cannot make this folder", name));
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The settings of the judge; null without --judge-url.
Json JudgeOf(const ScoreFlags& flags) {
  if (flags.judge_url.empty() != flags.judge_model.empty())
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is absent: --judge-url and --judge-model go together",
                            flags.judge_url.empty() ? "--judge-url" : "--judge-model"));
  if (flags.judge_url.empty()) return nullptr;
  Json judge = {{"base_url", flags.judge_url}, {"model", flags.judge_model}};
  if (!flags.judge_key_env.empty()) judge["api_key_env"] = flags.judge_key_env;
  JudgeSettingsFromJson(judge, "--judge-url");
  return judge;
}

EvalConfig ConfigFor(const ScoreFlags& flags, const fs::path& scratch) {
  EvalConfig config;
  config.file = fs::absolute(flags.generations);
  config.name = fs::path(flags.generations).stem().string();
  TaskRequest request;
  request.name = flags.task;
  request.where = "--task";
  if (flags.limit > 0) request.limit = flags.limit;
  config.tasks = {request};
  config.programs_here = true;
  if (!flags.data_dir.empty()) config.data_dir = fs::absolute(flags.data_dir);
  for (const std::string& dir : flags.task_dirs) config.task_dirs.push_back(fs::absolute(dir));
  if (flags.allow_task_code) config.task_code.allowed = TaskCodeOptions::Allowed::kBoxed;
  if (!flags.task_python.empty()) config.task_code.python = flags.task_python;
  config.judge = JudgeOf(flags);
  config.cache_dir = DefaultCacheDir();
  config.state_dir = scratch / "state";
  const EngineKind& engine = EngineOfEarlierAnswers();
  config.engine.name = engine.name;
  config.engine.settings = {{engine.generations_key, (scratch / "generations").string()}};
  config.workers.devices = {"cpu:0"};
  config.workers.count = 1;
  config.workers.threads = 1;
  config.workers.threads_given = true;
  config.metrics.processes = flags.processes > 0 ? flags.processes : UsableCores();
  config.metrics.sandbox.unsafe = flags.unsafe;
  config.staging.root = scratch / "staging";
  config.output_dir = flags.output.empty() ? scratch / "runs" : fs::absolute(flags.output);
  return config;
}

// Turns the file into generations that an engine answers from.
void Import(const ScoreFlags& flags, const fs::path& binaries, EvalConfig* config,
            const fs::path& scratch) {
  const Preparer preparer(binaries);
  const size_t tasks =
      preparer.Ask(InputOf(*config, PreparationInput::Work::kCheck)).at("tasks").size();
  if (tasks != 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--task {}: a group of {} tasks; name one of its tasks", flags.task, tasks));
  }
  const Suite suite = preparer.Prepare(
      InputOf(*config, PreparationInput::Work::kPrepare), [](size_t, size_t) {}, nullptr);
  const PreparedTask prepared(suite.tasks.at(0).prepared);
  const fs::path folder = scratch / "generations" / FolderNameOf(suite.tasks.at(0).definition.name);
  fs::create_directories(folder);
  const ImportedGenerations imported =
      ImportGenerations(prepared, flags.generations, folder / "1.1.jsonl");
  if (!imported.missing.empty()) {
    std::vector<std::string> shown;
    for (size_t i = 0; i < std::min<size_t>(10, imported.missing.size()); ++i) {
      shown.push_back(std::to_string(imported.missing[i]));
    }
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: {} of {} documents of {} have no generation: {}{}", flags.generations,
                    imported.missing.size(), prepared.document_count(), flags.task,
                    Join(shown, ", "), imported.missing.size() > shown.size() ? ", …" : ""),
        imported.missing[0] > 0
            ? fmt::format("add them, or score only the first with --limit {}", imported.missing[0])
            : "add them");
  }
  if (imported.beyond_limit > 0) {
    Print(stderr, "evald: {} answers to documents beyond --limit are passed over\n",
          imported.beyond_limit);
  }
  if (imported.other_prompts > 0) {
    Print(stderr, "evald: warning: {} answers were given to other prompts than {}'s\n",
          imported.other_prompts, flags.task);
  }
  config->tasks[0].repeats = imported.repeats;
}

// Makes the report page; there are no gates.
Judgement Judged(const RunOutcome& outcome, const fs::path& binaries) {
  JudgeRequest request;
  request.candidate = outcome.directory;
  request.results = outcome.results.is_null() ? Json::object() : outcome.results;
  request.run_status = outcome.status;
  request.problems = outcome.problems;
  return Preparer(binaries).JudgeOrSayWhy(InputOf(std::move(request), ReadRoots(), LimitsConfig()));
}

ExitStatus Score(const Common& common, const ScoreFlags& flags) {
  const ScratchFolder scratch;
  RunOptions options;
  options.config = ConfigFor(flags, scratch.path());
  options.config.called = "--judge-key-env";
  CheckJudgeKeys(options.config);
  Import(flags, common.binaries, &options.config, scratch.path());
  options.binaries = common.binaries;
  options.quiet = common.quiet;
  options.log_level = common.log_level;
  RunOutcome outcome = RunEvaluation(options);
  if (flags.output.empty()) outcome.directory.clear();  // it is removed with the scratch folder
  if (!flags.output.empty()) {
    const bool complete = outcome.status == ExitStatus::kDone;
    WriteReports({}, Judged(outcome, common.binaries), complete ? outcome.directory : "");
  }
  PrintOutcome(outcome, options.config, common.json);
  return outcome.status;
}

}  // namespace

void AddScore(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<ScoreFlags>();
  Command command = app.AddCommand("score", "Score a file of generations without a model");
  command.AddOption("--task", &flags->task, "The task that they answer").Required();
  command
      .AddOption(
          "--generations", &flags->generations,
          "JSON Lines: evald's own, the harness's samples_*.jsonl, or task_id and completion")
      .Required()
      .ExistingFile();
  command.AddOption("--data-dir", &flags->data_dir, "Where datasets lie")
      .Metavar("DIR")
      .ExistingFolder();
  command.AddOption("--task-dir", &flags->task_dirs, "A folder with more task files")
      .Metavar("DIR")
      .ExistingFolder();
  command.AddOption("--limit", &flags->limit, "Only the first documents").Positive();
  command.AddOption("--output", &flags->output, "Keep the run's files in a folder below this one")
      .Metavar("DIR");
  command.AddOption("--processes", &flags->processes, "Metric processes; one per core by default")
      .Positive();
  command.AddFlag("--allow-task-code", &flags->allow_task_code,
                  "Run the Python code of task files, in a sandbox");
  command
      .AddOption("--task-python", &flags->task_python,
                 "The Python that runs this code, and whose pyarrow reads tables")
      .Metavar("PYTHON");
  command.AddOption("--judge-url", &flags->judge_url, "The server of a judge (docs/metrics.md)")
      .Metavar("URL");
  command.AddOption("--judge-model", &flags->judge_model, "The judge's name there").Metavar("NAME");
  command
      .AddOption("--judge-key-env", &flags->judge_key_env,
                 "The environment variable with the server's key")
      .Metavar("NAME");
  command.AddFlag("--unsafe", &flags->unsafe, "Run the generations' code WITHOUT isolation");
  command.Footer(
      "\nExamples:\n  evald score --task humaneval --generations samples.jsonl --data-dir data\n"
      "  evald score --task gsm8k --generations samples_gsm8k.jsonl --data-dir data --json");
  command.OnChosen([=] { *action = [=] { return Score(*common, *flags); }; });
}

}  // namespace evald::cli

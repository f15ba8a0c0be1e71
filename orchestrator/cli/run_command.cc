#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/open_files.h"
#include "base/print.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/follow.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/cli/terminal.h"
#include "orchestrator/cli/verdict_flags.h"
#include "orchestrator/cli/wanted.h"
#include "orchestrator/config/sections.h"
#include "orchestrator/prepare/config_check.h"
#include "orchestrator/prepare/preparer.h"
#include "orchestrator/report/results.h"
#include "orchestrator/run/last_run.h"
#include "orchestrator/run/run_results.h"
#include "orchestrator/service/foreground.h"
#include "orchestrator/state/run_store.h"

namespace evald::cli {
namespace {

struct RunFlags {
  Wanted wanted;
  bool fast = false;
  std::string resume;
  std::optional<CommandOption> resume_option;
  VerdictOptions verdict;
  ClientFlags client;
};

// Refuses a state folder that cannot be written to, before the run's own folder is made.
void CheckState(const EvalConfig& config) {
  MakeFolderOf(config.file, "state_dir", config.state_dir);
  const RunStore store(config.state_dir);
}

Judgement JudgeOutcome(const EvalConfig& config, const RunOutcome& outcome, bool page,
                       const Preparer& preparer) {
  JudgeRequest request;
  request.policy = config.gates;
  request.candidate = outcome.directory;
  request.results = outcome.results.is_null() ? Json::object() : outcome.results;
  request.run_status = outcome.status;
  request.problems = outcome.problems;
  request.columns = OutputColumns();
  request.page = page || outcome.status == ExitStatus::kDone;
  return preparer.JudgeOrSayWhy(InputOf(std::move(request), config.roots, config.limits));
}

// Runs on a service's devices, and shows its results like those of a run here.
ExitStatus RunThere(const Common& common, const RunFlags& flags) {
  const VerdictOptions& verdict = flags.verdict;
  if (flags.resume_option->given() || !verdict.gates.empty() || !verdict.baseline.empty() ||
      !verdict.junit.empty() || !verdict.markdown.empty() || !verdict.html.empty()) {
    throw Error(ErrorKind::kUsage,
                "--server: a service resumes by itself and judges by the gates in eval.yaml",
                "'evald submit --resume RUN' takes up one that ended; leave out --resume, --gates, "
                "--baseline, --junit, --markdown and --html");
  }
  Client client(ReadClientFlags(flags.client));
  const std::string id = SubmitFile(&client, {flags.wanted}).at("id").get<std::string>();
  if (!common.quiet) Print(stderr, "evald: submitted {} to {}\n", id, client.server());
  const Json run = FollowRun(&client, id, common, false);
  if (run.at("state") != "done") return PrintRun(run, common);
  const Json results = client.Get(RunPath(id) + "/results");
  if (common.json) {
    PrintJson(results);
  } else {
    PrintLines(ResultsTable(results));
  }
  return StatusOfRun(run);
}

ExitStatus Run(const Common& common, RunFlags flags) {
  if (flags.fast) flags.wanted.overrides.set.push_back("engine.fast=true");
  if (!flags.client.server.empty()) return RunThere(common, flags);
  RunOptions options;
  options.config = ReadWanted(flags.wanted);
  RaiseOpenFiles(OpenFilesFor(static_cast<uint64_t>(std::max(1, options.config.workers.count)) +
                              static_cast<uint64_t>(options.config.metrics.processes)));
  options.binaries = common.binaries;
  options.resume = flags.resume_option->given();
  options.resume_run = flags.resume;
  options.quiet = common.quiet;
  options.log_level = common.log_level;
  options.config.gates = PolicyOf(flags.verdict, options.config.gates);
  // `last` leads to another run once this one has ended.
  std::error_code absent;
  if (auto& baseline = options.config.gates.baseline; std::filesystem::exists(baseline, absent))
    baseline = std::filesystem::canonical(baseline);
  options.config.programs_here = true;
  CheckConfig(options.config, common.binaries, PreparationInput::Work::kCheck);
  const Preparer preparer(common.binaries);
  CheckState(options.config);
  const RunOutcome outcome = RunEvaluation(options);
  const Judgement judgement =
      JudgeOutcome(options.config, outcome, !flags.verdict.html.empty(), preparer);
  const bool complete = outcome.status == ExitStatus::kDone;
  WriteReports(flags.verdict, judgement, complete ? outcome.directory : "");
  if (complete) PointLastAt(outcome.directory, options.config.name);
  PrintOutcome(outcome, options.config, common.json,
               judgement.has_gates() ? judgement.verdict : Json());
  if (!common.json) PrintVerdict(judgement);
  return judgement.status;
}

}  // namespace

void AddRun(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<RunFlags>();
  Command command = app.AddCommand("run", "Evaluate one checkpoint and show its scores");
  AddWanted(command, &flags->wanted).Required();
  AddVerdictFlags(command, &flags->verdict);
  command.AddFlag("--fast", &flags->fast,
                  "On GPUs, give determinism up for speed: engine.fast=true. Results say so");
  command
      .AddOption("--baseline", &flags->verdict.baseline,
                 "What gates compare with: a run's folder or a results file")
      .Metavar("RUN_OR_RESULTS")
      .ExistingPath();
  command
      .AddOption("--server", &flags->client.server,
                 "Submit it to this service and follow it, instead")
      .Metavar("URL");
  flags->resume_option = command
                             .AddOption("--resume", &flags->resume,
                                        "Finish an interrupted run: the newest, or the one named")
                             .ValueOptional()
                             .Metavar("[RUN]");
  command.Footer(
      "\nExamples:\n  evald run examples/quickstart/eval.yaml\n  evald run checkpoints/step-600 "
      "--tasks "
      "gsm8k,mmlu --limit 100 --data-dir data\n  evald run eval.yaml --json | jq .results\n"
      "  evald run eval.yaml --resume\n  evald run eval.yaml --gates gates.yaml --baseline "
      "runs/last --junit gates.xml\n\nCtrl-C once finishes what is under way and stops; twice "
      "stops at "
      "once. Both leave a run\nthat --resume finishes.");
  command.OnChosen([=] { *action = [=] { return Run(*common, *flags); }; });
}

}  // namespace evald::cli

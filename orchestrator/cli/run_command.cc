#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/open_files.h"
#include "base/print.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/follow.h"
#include "orchestrator/cli/launched_nodes.h"
#include "orchestrator/cli/launchers.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/cli/terminal.h"
#include "orchestrator/cli/verdict_flags.h"
#include "orchestrator/cli/wanted.h"
#include "orchestrator/config/launcher_section.h"
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
  int nodes = 0;
  std::string launcher;
  bool dry_run = false;
};

// The launcher that the flags and the configuration ask for.
std::optional<LauncherConfig> LauncherOf(const EvalConfig& config, const RunFlags& flags) {
  std::optional<LauncherConfig> launcher = config.launcher;
  if (!flags.launcher.empty() && (!launcher || launcher->kind != flags.launcher))
    launcher = RunLauncherOf(flags.launcher);
  if (flags.nodes == 0) return launcher;
  if (!launcher) {
    throw Error(ErrorKind::kUsage, "--nodes needs a launcher",
                "add --launcher slurm, or 'launcher' to eval.yaml (docs/slurm.md); within a job of "
                "Slurm all its nodes compute without --nodes");
  }
  SetNodes(&*launcher, flags.nodes);
  return launcher;
}

// The nodes that compute in place of this host; null if this host does.
std::unique_ptr<RunNodes> NodesFor(EvalConfig* config, const RunFlags& flags,
                                   const Common& common) {
  config->launcher = LauncherOf(*config, flags);
  if (config->launcher) {
    CompleteLauncher(&*config->launcher, common.binaries, config->state_dir);
    return NodesOfLauncher(*config);
  }
  const std::optional<Allocation> allocation = AllocationHere(OwnVariable);
  if (!allocation || (allocation->nodes == 1 && allocation->on_node)) return nullptr;
  if (!common.quiet) {
    Print(stderr, "evald: using {} node{} of Slurm's job {}\n", allocation->nodes,
          allocation->nodes == 1 ? "" : "s", allocation->job);
  }
  return NodesOfAllocation(*config, *allocation, common.binaries / "evald");
}

void RequireDevices(const EvalConfig& config, const RunNodes* nodes) {
  if (nodes != nullptr || config.workers.devices != std::vector<std::string>{"none"}) return;
  throw Error(ErrorKind::kUsage, "workers.devices: found none, expected devices that compute",
              "name devices, or ask for nodes with --nodes");
}

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

ExitStatus ShowDryRun(EvalConfig config, const Common& common) {
  if (!config.launcher)
    throw Error(ErrorKind::kUsage,
                "--dry-run shows what a launcher would submit, and there is none",
                "add --launcher slurm");
  LauncherConfig launcher = WithAgentArguments(config);
  ShowJobs({launcher}, common, config.state_dir, "evald-<run>-");
  return ExitStatus::kDone;
}

ExitStatus Run(const Common& common, RunFlags flags) {
  if (flags.fast) flags.wanted.overrides.set.push_back("engine.fast=true");
  if (!flags.client.server.empty()) return RunThere(common, flags);
  RunOptions options;
  options.config = ReadWanted(flags.wanted);
  if (flags.dry_run) {
    options.config.launcher = LauncherOf(options.config, flags);
    return ShowDryRun(options.config, common);
  }
  const std::unique_ptr<RunNodes> nodes = NodesFor(&options.config, flags, common);
  RequireDevices(options.config, nodes.get());
  options.nodes = nodes.get();
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
  options.config.programs_here = nodes == nullptr;
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
  command
      .AddOption("--nodes", &flags->nodes,
                 "Have so many nodes of a launcher compute, each by a job of its own")
      .Metavar("N")
      .Within(1, 10'000);
  command
      .AddOption("--launcher", &flags->launcher,
                 "slurm, with the settings of 'launcher' in eval.yaml (docs/slurm.md)")
      .Metavar("KIND");
  command.AddFlag("--dry-run", &flags->dry_run,
                  "With a launcher: show what would be submitted, and evaluate nothing");
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
      "runs/last --junit gates.xml\n  evald run eval.yaml --nodes 4 --launcher slurm\n\nWithin an "
      "allocation of Slurm, all of its nodes compute.\nCtrl-C once finishes what is under way and "
      "stops; twice "
      "stops at "
      "once. Both leave a run\nthat --resume finishes.");
  command.OnChosen([=] { *action = [=] { return Run(*common, *flags); }; });
}

}  // namespace evald::cli

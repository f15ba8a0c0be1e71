#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/cores.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/report/progress.h"
#include "orchestrator/simulate/gantt.h"
#include "orchestrator/simulate/job_day.h"
#include "orchestrator/simulate/presets.h"
#include "orchestrator/simulate/report.h"
#include "orchestrator/simulate/stream.h"
#include "orchestrator/simulate/trace.h"

namespace evald::cli {
namespace {

constexpr int64_t kQuickUs = 1'000'000;  // a shorter simulation needs no bar
constexpr int64_t kShowEveryUs = 100'000;

struct SimulateFlags {
  std::string preset = "acme-7b-63";
  std::string workload;
  std::string cluster;
  int nodes = 0;
  int checkpoints = 0;
  double every_s = 0;
  std::string staging;
  std::string print;
  std::string gantt;
  std::string trace;
  bool file_order = false;
  Scenario scenario;
};

SimCluster ChosenCluster(const SimulateFlags& flags, const SimPreset& preset) {
  SimCluster cluster = FindCluster(flags.cluster.empty() ? preset.cluster : flags.cluster);
  if (flags.cluster.empty()) cluster.nodes = preset.nodes;
  if (flags.nodes > 0) cluster.nodes = flags.nodes;
  if (!flags.staging.empty()) cluster.staging = SimStagingOf(flags.staging);
  return cluster;
}

Scenario MakeScenario(const SimulateFlags& flags, const SimPreset& preset) {
  Scenario scenario = flags.scenario;
  scenario.workload = flags.workload.empty()
                          ? ParseWorkload(std::string(PresetWorkloadText()), preset.name + ".yaml")
                          : ReadWorkload(flags.workload);
  scenario.cluster = ChosenCluster(flags, preset);
  if (scenario.lose_node_at > 0 && scenario.cluster.nodes < 2) {
    throw Error(ErrorKind::kUsage,
                "--lose-node-at: the cluster has one node, and without it nothing is left",
                "give --nodes 2 or more");
  }
  if (scenario.policies.empty()) scenario.policies = PolicyNames();
  // Refuses an unknown name
  for (const std::string& policy : scenario.policies) MakePolicy(policy);
  scenario.shuffle = !flags.file_order;
  scenario.keep_spans = flags.gantt.empty() && flags.trace.empty() ? 0 : 1;
  scenario.threads = UsableCores();
  return scenario;
}

// Makes every draw a checkpoint.
void MakeStreamScenario(int checkpoints, Scenario* scenario) {
  if (scenario->draws > 1) {
    throw Error(ErrorKind::kUsage, "--draws: each checkpoint of a stream is a draw of its own",
                "give --checkpoints instead");
  }
  if (scenario->has_faults() || scenario->ablate) {
    throw Error(ErrorKind::kUsage,
                "faults and ablations are simulated for one checkpoint, not for a stream",
                "leave out --checkpoints, or give --preset acme-7b-63");
  }
  if (scenario->cluster.staging != SimStaging::kEach) {
    throw Error(ErrorKind::kUsage,
                "--staging: link and tree are simulated for one checkpoint, not for a stream",
                "leave out --checkpoints, or give --staging each");
  }
  scenario->draws = scenario->keep_spans = checkpoints;
}

ScenarioResult RunShown(const Common& common, const Scenario& scenario) {
  ProgressDisplay display(common.quiet);
  const int64_t begin = MonotonicMicros();
  int64_t shown = begin;
  ProgressSnapshot last;
  const ScenarioResult result = RunScenario(scenario, [&](int done, int all) {
    const int64_t now = MonotonicMicros();
    last.elapsed_s = static_cast<double>(now - begin) / 1e6;
    last.remaining_s = last.elapsed_s / done * (all - done);
    last.phases = {{"simulate", done, all}};
    if (now - begin < kQuickUs || now - shown < kShowEveryUs) return;
    shown = now;
    display.Show(last);
  });
  if (shown > begin) display.Finish(last);
  return result;
}

ExitStatus PrintPreset(const SimulateFlags& flags, const SimPreset& preset) {
  const std::string cluster = flags.cluster.empty() ? preset.cluster : flags.cluster;
  const std::vector<std::string>& names = SimClusterNames();
  if (flags.print == "cluster" && std::find(names.begin(), names.end(), cluster) == names.end()) {
    throw Error(ErrorKind::kUsage, fmt::format("--print cluster: no cluster is called '{}'{}",
                                               cluster, Suggestion(cluster, names)));
  }
  fmt::print("{}", flags.print == "workload" ? PresetWorkloadText() : ClusterText(cluster));
  return ExitStatus::kDone;
}

ExitStatus SimulateDay(const Common& common, const SimulateFlags& flags, const SimPreset& preset) {
  const Scenario& asked = flags.scenario;
  if (!flags.workload.empty() || !flags.gantt.empty() || !flags.trace.empty() ||
      flags.checkpoints > 0 || flags.every_s > 0 || asked.prior_error > 1 || asked.no_priors ||
      asked.has_faults() || asked.ablate || flags.file_order || !flags.staging.empty()) {
    throw Error(ErrorKind::kUsage,
                "--preset cluster-day takes --cluster, --nodes, --policy, --draws (its days) and "
                "--seed, and nothing else");
  }
  JobDay day;
  day.cluster = ChosenCluster(flags, preset);
  day.policies = asked.policies.empty()
                     ? std::vector<std::string>{"coupled", "decoupled-fifo", "elastic"}
                     : asked.policies;
  day.days = asked.draws;
  day.seed = asked.seed;
  day.weights_bytes = ParseWorkload(std::string(PresetWorkloadText()), "preset").model.bytes;
  const JobDayReport report = SimulateJobDay(day);
  if (common.json) {
    PrintJson(ToJson(report));
  } else {
    fmt::print("{}", JobDayText(report));
  }
  return ExitStatus::kDone;
}

ExitStatus Simulate(const Common& common, const SimulateFlags& flags) {
  const SimPreset& preset = FindPreset(flags.preset);
  if (!flags.print.empty()) return PrintPreset(flags, preset);
  if (preset.job_day) return SimulateDay(common, flags, preset);
  Scenario scenario = MakeScenario(flags, preset);
  const int checkpoints = flags.checkpoints > 0 ? flags.checkpoints : preset.checkpoints;
  if (checkpoints > 1) {
    MakeStreamScenario(checkpoints, &scenario);
  } else if (flags.every_s > 0) {
    throw Error(ErrorKind::kUsage, "--every: there is one checkpoint only",
                "give --checkpoints as well");
  }
  const ScenarioResult result = RunShown(common, scenario);
  const SimReport report = MakeReport(scenario, result);
  std::optional<StreamReport> stream;
  if (checkpoints > 1)
    stream = MakeStream(scenario, result, flags.every_s > 0 ? flags.every_s : preset.every_s);
  if (!flags.gantt.empty()) WriteGantt(flags.gantt, report, result);
  if (!flags.trace.empty()) WriteTrace(flags.trace, report, result);
  if (common.json) {
    Json json = ToJson(report);
    if (stream) json["stream"] = ToJson(*stream);
    PrintJson(json);
  } else {
    fmt::print("{}{}", ReportText(report), stream ? "\n" + StreamText(*stream) : "");
  }
  return ExitStatus::kDone;
}

// Checks what the parser cannot: "nan" is in every range, and names may repeat.
void CheckArguments(const SimulateFlags& flags) {
  const Scenario& scenario = flags.scenario;
  for (const auto& [option, value] : {std::pair{"--prior-error", scenario.prior_error},
                                      {"--fail-rate", scenario.trial_failure_rate},
                                      {"--lose-node-at", scenario.lose_node_at},
                                      {"--slow-device", scenario.slow_device},
                                      {"--slow-node", scenario.slow_node},
                                      {"--every", flags.every_s}}) {
    if (std::isnan(value))
      throw Error(ErrorKind::kUsage, fmt::format("{}: found nan, expected a number", option));
  }
  const std::vector<std::string>& names = scenario.policies;
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name) {
      throw Error(ErrorKind::kUsage, fmt::format("--policy: '{}' is given twice", *name));
    }
  }
}

void AddWhat(Command command, SimulateFlags* flags) {
  std::vector<std::string> presets;
  for (const SimPreset& preset : SimPresets())
    presets.push_back(fmt::format("{}: {}", preset.name, preset.summary));
  command.AddOption("--preset", &flags->preset, Join(presets, "; ")).Metavar("NAME");
  command.AddOption("--workload", &flags->workload, "A workload of one's own (docs/simulate.md)")
      .Metavar("FILE");
  command.AddOption("--cluster", &flags->cluster, Join(SimClusterNames(), ", ") + ", or a file")
      .Metavar("NAME|FILE");
  command.AddOption("--nodes", &flags->nodes, "Nodes, instead of the cluster's").Within(1, 100'000);
  command
      .AddOption(
          "--staging", &flags->staging,
          "How nodes get the checkpoint, instead of the cluster's way: each over a link of its "
          "own, all over one link, or from one another in a tree")
      .OneOf({"each", "link", "tree"});
  command
      .AddOption("--checkpoints", &flags->checkpoints,
                 "So many of a training run, on the same devices")
      .Within(1, 1000);
  command.AddOption("--every", &flags->every_s, "Between two checkpoints; 1800 by default")
      .Within(1.0, 1e7)
      .Metavar("SECONDS");
  command
      .AddOption("--print", &flags->print,
                 "Print the preset's workload or cluster, to begin a file of one's own with")
      .OneOf({"workload", "cluster"});
}

void AddHow(Command command, SimulateFlags* flags) {
  Scenario* scenario = &flags->scenario;
  command
      .AddOption("--policy", &scenario->policies,
                 "Some of " + Join(PolicyNames(), ", ") + "; all by default")
      .CommaSeparated()
      .OneArgument()
      .Metavar("NAME,...");
  command
      .AddOption("--draws", &scenario->draws,
                 "How many times lengths and the order of datasets are drawn")
      .Within(1, 100'000);
  command.AddOption("--seed", &scenario->seed, "Of the first draw; equal seeds give equal results")
      .Metavar("N");
  command.AddFlag("--file-order", &flags->file_order,
                  "Datasets in the order of the file rather than a drawn one");
  command
      .AddOption("--prior-error", &scenario->prior_error,
                 "Priors are wrong by a random factor of up to this")
      .Within(1.0, 1000.0);
  command.AddFlag("--no-priors", &scenario->no_priors, "Nothing is known but prompts and limits");
  command
      .AddOption("--fail-rate", &scenario->trial_failure_rate,
                 "Share of trials that fail on their way")
      .Within(0.0, 0.5);
  command
      .AddOption("--lose-node-at", &scenario->lose_node_at,
                 "The last node is lost at this share of the bound")
      .Within(0.0, 1.0)
      .Metavar("SHARE");
  command
      .AddOption("--slow-device", &scenario->slow_device,
                 "The first device takes so many times as long as it says")
      .Within(1.0, 1000.0)
      .Metavar("FACTOR");
  command
      .AddOption("--slow-node", &scenario->slow_node,
                 "So do all devices of the second node, or of the only one")
      .Within(1.0, 1000.0)
      .Metavar("FACTOR");
  command.AddFlag("--ablate", &scenario->ablate,
                  "Also evald's policy without each of the five decouplings");
}

}  // namespace

void AddSimulate(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<SimulateFlags>();
  Command command =
      app.AddCommand("simulate", "Compare schedules of a workload on a cluster without running it");
  AddWhat(command, flags.get());
  AddHow(command, flags.get());
  command.AddOption("--gantt", &flags->gantt, "Write the first draw as a picture")
      .Metavar("FILE.svg");
  command
      .AddOption("--trace", &flags->trace,
                 "Write it in the Trace Event Format, which Perfetto opens")
      .Metavar("FILE.json");
  command.Footer(
      "\nExamples:\n"
      "  evald simulate --nodes 4                          a 7B checkpoint on 63 datasets, 32 "
      "GPUs\n"
      "  evald simulate --nodes 4 --draws 200 --json       percentiles, for programs\n"
      "  evald simulate --policy coupled,elastic --gantt schedule.svg\n"
      "  evald simulate --cluster acme-modern --nodes 4 --prior-error 3 --draws 100\n"
      "  evald simulate --nodes 4 --fail-rate 0.05 --lose-node-at 0.5\n"
      "  evald simulate --nodes 64 --staging link          all nodes read the checkpoint over one "
      "link\n"
      "  evald simulate --preset stream --every 1200       does it keep up with training?\n"
      "  evald simulate --preset cluster-day --draws 30    a month of jobs as a cluster saw them\n"
      "  evald simulate --print cluster > cluster.yaml; evald simulate --cluster cluster.yaml\n\n"
      "Times are simulated seconds; docs/simulate.md says what is modelled.");
  command.OnChosen([=] {
    CheckArguments(*flags);
    if (flags->scenario.no_priors && flags->scenario.prior_error > 1) {
      throw Error(ErrorKind::kUsage, "simulate: give either --prior-error or --no-priors");
    }
    *action = [=] { return Simulate(*common, *flags); };
  });
}

}  // namespace evald::cli

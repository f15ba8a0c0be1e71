#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/report/progress.h"
#include "orchestrator/simulate/gantt.h"
#include "orchestrator/simulate/presets.h"
#include "orchestrator/simulate/report.h"
#include "orchestrator/simulate/trace.h"

namespace evald::cli {
namespace {

constexpr int64_t kQuickUs = 1'000'000;  // what is over by then needs no bar
constexpr int64_t kShowEveryUs = 100'000;

struct Flags {
  std::string preset = "acme-7b-63";
  std::string workload;
  std::string cluster;
  int nodes = 0;
  std::string print;
  std::string gantt;
  std::string trace;
  bool file_order = false;
  Scenario scenario;
};

Scenario MakeScenario(const Flags& flags) {
  Scenario scenario = flags.scenario;
  const SimPreset& preset = FindPreset(flags.preset);
  scenario.workload = flags.workload.empty()
                          ? ParseWorkload(std::string(PresetWorkloadText(preset.name)), preset.name + ".yaml")
                          : ReadWorkload(flags.workload);
  scenario.cluster = FindCluster(flags.cluster.empty() ? preset.cluster : flags.cluster);
  if (flags.nodes > 0) scenario.cluster.nodes = flags.nodes;
  if (scenario.lose_node_at > 0 && scenario.cluster.nodes < 2) {
    throw Error(ErrorKind::kUsage, "--lose-node-at: the cluster has one node, and without it nothing is left",
                "give --nodes 2 or more");
  }
  if (scenario.policies.empty()) scenario.policies = PolicyNames();
  for (const std::string& policy : scenario.policies) MakePolicy(policy);  // refuses what is not known
  scenario.shuffle = !flags.file_order;
  scenario.keep_spans = !flags.gantt.empty() || !flags.trace.empty();
  scenario.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return scenario;
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

ExitStatus Print(const Flags& flags) {
  const SimPreset& preset = FindPreset(flags.preset);
  if (flags.print == "workload") {
    fmt::print("{}", PresetWorkloadText(preset.name));
  } else {
    fmt::print("{}", ClusterText(flags.cluster.empty() ? preset.cluster : flags.cluster));
  }
  return ExitStatus::kDone;
}

ExitStatus Simulate(const Common& common, const Flags& flags) {
  if (!flags.print.empty()) return Print(flags);
  const Scenario scenario = MakeScenario(flags);
  const ScenarioResult result = RunShown(common, scenario);
  const SimReport report = MakeReport(scenario, result);
  if (!flags.gantt.empty()) WriteGantt(flags.gantt, report, result);
  if (!flags.trace.empty()) WriteTrace(flags.trace, report, result);
  if (common.json) {
    PrintJson(ToJson(report));
  } else {
    fmt::print("{}", ReportText(report));
  }
  return ExitStatus::kDone;
}

void AddWhat(CLI::App* command, Flags* flags) {
  std::vector<std::string> presets;
  for (const SimPreset& preset : SimPresets()) presets.push_back(preset.name);
  command->add_option("--preset", flags->preset, Join(presets, ", "))->type_name("NAME");
  command->add_option("--workload", flags->workload, "A workload of one's own (docs/simulate.md)")->type_name("FILE");
  command->add_option("--cluster", flags->cluster, Join(SimClusterNames(), ", ") + ", or a file")->type_name("NAME|FILE");
  command->add_option("--nodes", flags->nodes, "Nodes, instead of the cluster's")->check(CLI::Range(1, 100'000));
  command->add_option("--print", flags->print, "Print the preset's workload or cluster, to begin a file of one's own with")
      ->check(CLI::IsMember({"workload", "cluster"}));
}

void AddHow(CLI::App* command, Flags* flags) {
  Scenario* scenario = &flags->scenario;
  command->add_option("--policy", scenario->policies, "Some of " + Join(PolicyNames(), ", ") + "; all by default")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  command->add_option("--draws", scenario->draws, "How many times lengths and the order of datasets are drawn")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--seed", scenario->seed, "Of the first draw; equal seeds give equal results")->type_name("N");
  command->add_flag("--file-order", flags->file_order, "Datasets in the order of the file rather than a drawn one");
  command->add_option("--prior-error", scenario->prior_error, "Priors are wrong by a random factor of up to this")
      ->check(CLI::Range(1.0, 1000.0));
  command->add_flag("--no-priors", scenario->no_priors, "Nothing is known but prompts and limits");
  command->add_option("--fail-rate", scenario->trial_failure_rate, "Share of trials that fail on their way")
      ->check(CLI::Range(0.0, 0.5));
  command->add_option("--lose-node-at", scenario->lose_node_at, "The last node is lost at this share of the bound")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE");
  command->add_flag("--ablate", scenario->ablate, "Also evald's policy without each of the five decouplings");
}

}  // namespace

void AddSimulate(CLI::App* app, const Common* common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app->add_subcommand("simulate", "Compare schedules of a workload on a cluster without running it");
  AddWhat(command, flags.get());
  AddHow(command, flags.get());
  command->add_option("--gantt", flags->gantt, "Write the first draw as a picture")->type_name("FILE.svg");
  command->add_option("--trace", flags->trace, "Write it in the Trace Event Format, which Perfetto opens")
      ->type_name("FILE.json");
  command->footer(
      "\nExamples:\n"
      "  evald simulate --nodes 4                          a 7B checkpoint on 63 datasets, 32 GPUs\n"
      "  evald simulate --nodes 4 --draws 200 --json       percentiles, for programs\n"
      "  evald simulate --policy coupled,elastic --gantt schedule.svg\n"
      "  evald simulate --cluster acme-modern --nodes 4 --prior-error 3 --draws 100\n"
      "  evald simulate --nodes 4 --fail-rate 0.05 --lose-node-at 0.5\n"
      "  evald simulate --print cluster > cluster.yaml; evald simulate --cluster cluster.yaml\n\n"
      "Times are simulated seconds; docs/simulate.md says what is modelled.");
  command->callback([=] {
    if (flags->scenario.no_priors && flags->scenario.prior_error > 1) {
      throw CLI::ValidationError("simulate", "give either --prior-error or --no-priors");
    }
    *action = [=] { return Simulate(*common, *flags); };
  });
}

}  // namespace evald::cli

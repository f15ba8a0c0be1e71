#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/run_evald.h"
#include "orchestrator/simulate/presets.h"
#include "orchestrator/state/prior_store.h"

namespace evald::bench {
namespace {

constexpr double kClockScale = 1.0 / 20;
constexpr int kScoreSlots = 2;
constexpr int64_t kQuickShare = 40;  // --quick takes one document out of this many

// Costs of leasing and scoring on this machine, from a real run of a real model.
struct Measured {
  double lease_s = 0;  // of a device, for each trial
  double score_s = 0;  // of a slot, for each document
};

// Evaluates the example checkpoint on its three suites twice. The second run counts: priors plan
// its trials.
Measured MeasureQuickstart(const Options& options) {
  const auto example = options.binaries / "../../examples/quickstart/eval.yaml";
  std::filesystem::path run;
  for (const char* name : {"first", "second"}) {
    run = options.scratch / "quickstart" / name;
    RunCommand({(options.binaries / "evald").string(), "run", example.string(), "--quiet", "--json",
                "--set", fmt::format("output.dir={}", (options.scratch / "quickstart").string()),
                "--set", fmt::format("output.name={}", name), "--set",
                fmt::format("state_dir={}", (options.scratch / "quickstart-state").string()),
                "--set", fmt::format("cache_dir={}", (options.scratch / "cache").string())});
  }
  struct Row {
    double begin = 1e300, end = 0, device_s = 0;
  };
  std::map<int, Row> rows;
  size_t trials = 0;
  const Json timeline = ParseJson(ReadFile(run / "timeline.json"), "timeline.json");
  for (const Json& event : timeline["traceEvents"]) {
    if (event["name"] != "generate") continue;
    Row& row = rows[event["tid"].get<int>()];
    const double begin = event["ts"].get<double>() / 1e6;
    row.begin = std::min(row.begin, begin);
    row.end = std::max(row.end, begin + event["dur"].get<double>() / 1e6);
    row.device_s += event["args"]["device_seconds"].get<double>();
    trials += event["args"]["trials"].size();
  }
  Measured measured;
  for (const auto& [tid, row] : rows) measured.lease_s += row.end - row.begin - row.device_s;
  measured.lease_s =
      std::max(0.0, measured.lease_s) / static_cast<double>(std::max<size_t>(1, trials));
  const Json math =
      ParseJson(ReadFile(run / "run.json"), "run.json")["costs"]["tasks"]["quickstart_math"];
  measured.score_s = math["score_s"].get<double>() / math["documents"].get<double>();
  return measured;
}

// A task name that may be part of a file's name.
std::string NameOf(size_t index) { return fmt::format("dataset_{:02}", index); }

std::string TaskYaml(const std::string& name) {
  return fmt::format(R"yaml(task: {0}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {0}.jsonl}}}}
output_type: generate_until
test_split: test
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{q}}}}"
generation_kwargs: {{until: ["\n"], max_gen_toks: 16, do_sample: false}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
)yaml",
                     name);
}

class Emulation {
 public:
  Emulation(const Options& options, std::vector<SimTask> tasks, int workers, int places)
      : options_(options), tasks_(std::move(tasks)), workers_(workers), places_(places) {
    for (size_t i = 0; i < tasks_.size(); ++i) WriteTask(i);
  }

  // Model seconds from the beginning of the first document to the last score.
  double Run() {
    ImportPriors();
    std::string names;
    for (size_t i = 0; i < tasks_.size(); ++i) names += (i > 0 ? ", " : "") + NameOf(i);
    const auto config = WriteText(
        options_.scratch / "emulation.yaml",
        fmt::format(
            "tasks: [{}]\ntask_dirs: [tasks]\nengine: {{name: emulated, concurrency: {}, "
            "clock_scale: {}, "
            "text: '{{doc_id}}'}}\nworkers: {{count: {}, threads: 1}}\nmetrics: {{processes: {}}}\n"
            "cache_dir: cache\nstate_dir: state\noutput: {{dir: runs, name: "
            "emulation}}\nbootstrap_iters: 0\n",
            names, places_, kClockScale, workers_, kScoreSlots));
    ::setenv("EVALD_EMULATED_TIMES", (options_.scratch / "times").c_str(), 1);  // for the workers
    const CommandResult run = RunCommand(
        {(options_.binaries / "evald").string(), "run", config.string(), "--quiet", "--json"});
    cpu_seconds = run.cpu_seconds;
    double begin = 1e300, end = 0;
    const Json timeline =
        ParseJson(ReadFile(options_.scratch / "runs/emulation/timeline.json"), "timeline.json");
    for (const Json& event : timeline["traceEvents"]) {
      if (event["name"] == "generate") begin = std::min(begin, event["ts"].get<double>());
      if (event["name"] == "score")
        end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
    }
    return (end - begin) / 1e6 / kClockScale;
  }

  double cpu_seconds = 0;

 private:
  void WriteTask(size_t index) {
    const SimTask& task = tasks_[index];
    const std::string name = NameOf(index);
    std::string documents;
    for (int64_t i = 0; i < task.documents; ++i) documents += fmt::format("{{\"q\": \"{}\"}}\n", i);
    WriteText(options_.scratch / "tasks" / (name + ".jsonl"), documents);
    WriteText(options_.scratch / "tasks" / (name + ".yaml"), TaskYaml(name));
    WriteText(options_.scratch / "times" / (name + ".f32"),
              std::string(reinterpret_cast<const char*>(task.place_s.data()),
                          task.place_s.size() * sizeof(float)));
  }

  // Imports the priors that an earlier checkpoint's run would have left.
  void ImportPriors() {
    std::vector<TaskCost> costs;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const TaskEstimate truth = TrueEstimate(tasks_[i], places_);
      TaskCost cost;
      cost.task = NameOf(i);
      cost.place = {fmt::format("emulated, times from a file, clock {}", kClockScale),
                    "an earlier checkpoint", 0};
      cost.generates = true;
      cost.documents = truth.documents;
      cost.device_s = truth.device_s * static_cast<double>(truth.documents) * kClockScale;
      cost.longest_s = truth.request_s * kClockScale;
      costs.push_back(std::move(cost));
    }
    const auto file =
        WriteText(options_.scratch / "priors.json", prior_store::ToJson(costs).dump());
    RunCommand({(options_.binaries / "evald").string(), "priors", "--state-dir",
                (options_.scratch / "state").string(), "--import", file.string()});
  }

  const Options& options_;
  std::vector<SimTask> tasks_;
  int workers_;
  int places_;
};

// The same workload in the simulator, from the moment at which the weights are loaded.
double Simulated(SimCluster cluster, std::vector<SimTask> tasks, const Measured& measured,
                 double* bound) {
  cluster.score_slots_per_node = kScoreSlots;
  cluster.lease_s = measured.lease_s / kClockScale;
  std::vector<TaskEstimate> estimates;
  for (SimTask& task : tasks) {
    task.score_s = measured.score_s / kClockScale;
    task.slow_scoring = false;
    estimates.push_back(TrueEstimate(task, cluster.places));
  }
  const SimResult result = Simulation(cluster, 1, tasks, estimates, {}).Run();
  *bound = result.bound_s(cluster);
  return result.makespan_s;
}

}  // namespace

// The preset of 63 datasets on a node of 8 devices. The daemon, protocol, files, database and
// metric processes are real. The engine only takes the time, on a clock that runs 20 times as fast.
// The baseline is the simulator with the costs of leasing and scoring from a real run.
Result RunEmulate(const Options& options) {
  evald::Workload workload = ParseWorkload(std::string(PresetWorkloadText()), "acme-7b-63.yaml");
  if (options.quick) {
    for (SimDataset& dataset : workload.datasets)
      dataset.documents = std::max<int64_t>(1, dataset.documents / kQuickShare);
  }
  const SimCluster cluster = FindCluster("acme");
  const std::vector<SimTask> tasks = DrawTasks(workload, cluster, 1);
  const Measured measured = MeasureQuickstart(options);
  double bound = 0;
  const double simulated = Simulated(cluster, tasks, measured, &bound);
  Emulation emulation(options, tasks, cluster.devices(), cluster.places);
  Result result;
  result.value = emulation.Run();
  result.unit = "s of the model";
  result.baseline = "simulated, from what leasing and scoring cost in the real quickstart";
  result.baseline_value = simulated;
  result.smaller_is_better = true;
  result.target = 0.95;
  int64_t documents = 0;
  for (const SimTask& task : tasks) documents += task.documents;
  result.details = {{"emulated_over_simulated", result.value / simulated},
                    {"documents", documents},
                    {"bound_s", bound},
                    {"lease_ms", 1e3 * measured.lease_s},
                    {"score_ms", 1e3 * measured.score_s},
                    {"clock", 1 / kClockScale},
                    {"cpu_seconds", emulation.cpu_seconds}};
  return result;
}

}  // namespace evald::bench

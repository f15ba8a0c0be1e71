#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/run_evald.h"

namespace evald::bench {
namespace {

constexpr double kDecoupledShare = 1.15;

struct Shape {
  int tasks = 4;
  int documents = 40;       // of each task
  double generate_s = 0.1;  // of each document, on the one device
  double score_s = 0.25;    // of each document, on one of two slots
  double load_s = 1.0;
};

// The programs sleep. They occupy a slot and no processor, so the machine's load hardly matters.
std::string Documents(const Shape& shape) {
  std::string lines;
  for (int i = 0; i < shape.documents; ++i) {
    lines += fmt::format(
        "{{\"task_id\": \"slow/{}\", \"prompt\": \"def f():\\n\", \"canonical_solution\": \"    "
        "return {}\\n\", "
        "\"test\": \"import time\\ndef check(f):\\n    time.sleep({})\\n    assert f() == 1\\n\", "
        "\"entry_point\": \"f\"}}\n",
        i, i, shape.score_s);
  }
  return lines;
}

std::string Task(int index) {
  return fmt::format(R"yaml(task: slow_{}
dataset_path: json
dataset_kwargs: {{data_files: {{test: slow.jsonl}}}}
unsafe_code: true
output_type: generate_until
test_split: test
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{test}}}}\ncheck({{{{entry_point}}}})"
generation_kwargs: {{until: ["\ndef"], max_gen_toks: 16, do_sample: false}}
metric_list: [{{metric: !function humaneval/utils.pass_at_k, aggregation: mean, higher_is_better: true, k: [1]}}]
filter_list: [{{name: create_test, filter: [{{function: custom, filter_fn: !function humaneval/utils.build_predictions}}]}}]
metadata: {{version: 1.0}}
)yaml",
                     index);
}

class Bench {
 public:
  Bench(const Options& options, const Shape& shape) : options_(options), shape_(shape) {
    WriteText(options.scratch / "tasks" / "slow.jsonl", Documents(shape));
    for (int i = 0; i < shape.tasks; ++i) {
      WriteText(options.scratch / "tasks" / fmt::format("slow_{}.yaml", i), Task(i));
    }
  }

  // All tasks in one run: the device generates while the pool scores.
  double Decoupled() { return Evald(Configuration("all", 0, shape_.tasks, "emulated", "")); }

  // Task by task: load, generate everything, then score everything while the device waits.
  double Coupled() {
    double seconds = 0;
    for (int i = 0; i < shape_.tasks; ++i) {
      const std::string name = fmt::format("only-{}", i);
      const auto generated = GenerateOnly(i);
      seconds += generated.first;
      seconds += Evald(Configuration(name + "-score", i, i + 1, "replay", generated.second));
    }
    return seconds;
  }

 private:
  std::string Configuration(const std::string& name, int first, int end, const std::string& engine,
                            const std::string& generations) {
    std::string tasks;
    for (int i = first; i < end; ++i) tasks += fmt::format("{}slow_{}", i > first ? ", " : "", i);
    const std::string engine_text =
        engine == "emulated" ? fmt::format(
                                   "{{name: emulated, concurrency: 1, delay_ms: {}, load_seconds: "
                                   "{}, text: '    return 1'}}",
                                   shape_.generate_s * 1000, shape_.load_s)
                             : fmt::format("{{name: replay, generations: '{}'}}", generations);
    return WriteText(options_.scratch / (name + ".yaml"),
                     fmt::format(
                         "tasks: [{}]\ntask_dirs: [tasks]\nengine: {}\n"
                         "workers: {{count: 1, threads: 1}}\nmetrics: {{processes: 2}}\n"
                         "cache_dir: cache\nstate_dir: state\noutput: {{dir: runs, name: {}-{}}}\n",
                         tasks, engine_text, name, serial_++))
        .string();
  }

  double Evald(const std::string& config) {
    return RunCommand({(options_.binaries / "evald").string(), "run", config, "--quiet", "--json"})
        .seconds;
  }

  // Generation alone: the same task with a metric that costs nothing. Returns seconds and the file.
  std::pair<double, std::string> GenerateOnly(int index) {
    std::string task = Task(index);
    const size_t metrics = task.find("metric_list");
    task = task.substr(0, metrics) +
           "metric_list: [{metric: bypass, aggregation: bypass, higher_is_better: "
           "true}]\nmetadata: {version: 1.0}\n";
    task.replace(task.find("unsafe_code: true\n"), 18, "");
    WriteText(options_.scratch / "bare" / "slow.jsonl", Documents(shape_));
    WriteText(options_.scratch / "bare" / fmt::format("slow_{}.yaml", index), task);
    const std::string name = fmt::format("generate-{}", serial_++);
    const auto config = WriteText(
        options_.scratch / (name + ".yaml"),
        fmt::format("tasks: [slow_{}]\ntask_dirs: [bare]\nengine: {{name: emulated, concurrency: "
                    "1, delay_ms: {}, "
                    "load_seconds: {}, text: '    return 1'}}\nworkers: {{count: 1, threads: 1}}\n"
                    "metrics: {{processes: 2}}\ncache_dir: cache\nstate_dir: state\noutput: {{dir: "
                    "runs, name: {}}}\n",
                    index, shape_.generate_s * 1000, shape_.load_s, name));
    const double seconds = Evald(config.string());
    return {seconds, (options_.scratch / "runs" / name / "generations").string()};
  }

  const Options& options_;
  Shape shape_;
  int serial_ = 0;
};

}  // namespace

Result RunOverlap(const Options& options) {
  Shape shape;
  if (options.quick) shape = {2, 8, 0.05, 0.1, 0.5};
  Bench bench(options, shape);
  std::vector<double> decoupled, coupled;
  for (int round = 0; round < (options.quick ? 1 : 2); ++round) {
    decoupled.push_back(bench.Decoupled());
    coupled.push_back(bench.Coupled());
  }
  const double generate = shape.tasks * shape.documents * shape.generate_s;
  const double score = shape.tasks * shape.documents * shape.score_s / 2;
  const double bound = shape.load_s + std::max(generate, score);
  Result result;
  result.value = Median(decoupled);
  result.unit = "s";
  result.baseline = "the same work in coupled order";
  result.baseline_value = Median(coupled);
  result.smaller_is_better = true;
  result.target = Median(coupled) / (kDecoupledShare * bound);
  result.details = {{"bound_s", bound},
                    {"of_bound", Median(decoupled) / bound},
                    {"of_bound_at_most", kDecoupledShare},
                    {"generation_s", generate},
                    {"scoring_s", score},
                    {"load_s", shape.load_s},
                    {"decoupled_s", decoupled},
                    {"coupled_s", coupled}};
  return result;
}

}  // namespace evald::bench

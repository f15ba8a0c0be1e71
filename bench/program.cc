#include "bench/program.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/cpu_name.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::bench {
namespace {

Json Machine(const Program& program, const Options& options) {
  struct utsname name{};
  ::uname(&name);
  const std::string model = CpuName();
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  Json machine = {{"cpu", model.empty() ? "unknown" : model},
                  {"cores", std::thread::hardware_concurrency()},
                  {"memory", HumanBytes(pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)))},
                  {"kernel", name.release}};
  if (program.device != nullptr) machine["device"] = program.device(options);
  return machine;
}

Json Measure(const Program& program, const Workload& workload, const Options& options) {
  const Result result = workload.run(options);
  double ratio = 0;
  if (result.value > 0 && result.baseline_value > 0) {
    ratio = result.smaller_is_better ? result.baseline_value / result.value
                                     : result.value / result.baseline_value;
  }
  return {{"workload", workload.name},
          {"value", result.value},
          {"unit", result.unit},
          {"baseline", result.baseline},
          {"baseline_value", result.baseline_value},
          {"ratio", ratio},
          {"target", result.target},
          {"details", result.details},
          {"machine", Machine(program, options)}};
}

void Print(const Json& report) {
  const Json& machine = report["machine"];
  fmt::print("{} on {} × {}, {}\n", report["workload"].get<std::string>(),
             machine["cores"].get<int>(), machine["cpu"].get<std::string>(),
             machine["memory"].get<std::string>());
  if (machine.contains("device")) fmt::print("  device     {}\n", ToLine(machine["device"]));
  fmt::print("  evald      {:>12.3f} {}\n", report["value"].get<double>(),
             report["unit"].get<std::string>());
  fmt::print("  baseline   {:>12.3f} {}   {}\n", report["baseline_value"].get<double>(),
             report["unit"].get<std::string>(), report["baseline"].get<std::string>());
  const double ratio = report["ratio"].get<double>(), target = report["target"].get<double>();
  fmt::print("  ratio      {:>12.3f}   target at least {:.3f}: {}\n", ratio, target,
             ratio >= target ? "met" : "MISSED");
  for (const auto& [key, value] : report["details"].items())
    fmt::print("  {:<24} {}\n", key, ToLine(value));
}

// A folder for the workload's files. The destructor removes it.
class Scratch {
 public:
  Scratch() : path_((std::filesystem::temp_directory_path() / "evald-bench-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(ErrorKind::kInfrastructure, "cannot make " + path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int Run(const Program& program, int argc, char** argv) {
  CommandLine app(program.name, program.description);
  std::string name;
  bool list = false, json = false;
  Options options;
  options.data_dir = "../shared/data";
  app.AddOption("workload", &name, "The workload to run; --list names them");
  app.AddFlag("--list", &list, "Name the workloads");
  app.AddFlag("--json", &json, "Print one JSON object");
  app.AddFlag("--quick", &options.quick, "A small size, to check that the workload works");
  app.AddOption("--data-dir", &options.data_dir, "Real benchmark data");
  if (program.declare != nullptr) program.declare(app, &options);
  if (const int status = app.ParseOrStatus(argc, argv); status >= 0) return status;
  if (list) {
    for (const Workload& workload : program.workloads)
      fmt::print("{:<15} {}\n", workload.name, workload.summary);
    return 0;
  }
  std::vector<std::string> names;
  for (const Workload& workload : program.workloads) {
    names.push_back(workload.name);
    if (name != workload.name) continue;
    const Scratch scratch;
    options.scratch = scratch.path();
    options.binaries = std::filesystem::canonical("/proc/self/exe").parent_path();
    options.data_dir = std::filesystem::absolute(options.data_dir);
    if (!options.vllm.empty()) options.vllm = std::filesystem::absolute(options.vllm);
    if (!options.checkpoint.empty())
      options.checkpoint = std::filesystem::absolute(options.checkpoint);
    const Json report = Measure(program, workload, options);
    if (json) {
      fmt::print("{}\n", ToLine(report));
    } else {
      Print(report);
    }
    return 0;
  }
  fmt::print(stderr, "{}: unknown workload '{}'{}\n", program.name, name, Suggestion(name, names));
  return 2;
}

}  // namespace

int RunProgram(const Program& program, int argc, char** argv) {
  try {
    return Run(program, argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: error: {}\n", program.name, e.what());
    return 3;
  }
}

}  // namespace evald::bench

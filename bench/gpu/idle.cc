#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "bench/gpu/activity.h"
#include "bench/gpu/gpu_bench.h"
#include "bench/run_evald.h"
#include "evald/error.h"
#include "worker/native/config.h"
#include "worker/native/weights.h"

namespace evald::bench {
namespace fs = std::filesystem;
namespace {

constexpr size_t kKernelsShown = 15;

// Environment variables for programs that this one starts. The destructor restores them.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<const char*, std::string>> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, std::string>> variables_;
};

bool IsSharedMemory(const fs::path& folder) {
  struct statfs about{};
  return ::statfs(folder.c_str(), &about) == 0 && about.f_type == TMPFS_MAGIC;
}

fs::path WriteConfig(const Options& options, const fs::path& checkpoint, const std::string& uuid) {
  Json tasks = Json::array();
  for (const char* name : {"humaneval", "gsm8k", "mbpp", "mmlu"}) {
    Json task = {{"task", name}};
    if (options.quick) task["limit"] = 2;
    tasks.push_back(task);
  }
  // The parity check is made once for each kind of device, not in each run.
  Json engine = {{"name", "native"}, {"parity_seconds", 0}};
  if (options.fast) engine["fast"] = true;
  if (!options.graphs) engine["graphs"] = false;
  Json config = {{"checkpoint", checkpoint.string()},
                 {"tasks", tasks},
                 {"data_dir", options.data_dir.string()},
                 {"engine", engine},
                 {"workers", {{"devices", Json::array({"cuda:" + uuid})}}},
                 {"cache_dir", (options.scratch / "cache").string()},
                 {"state_dir", (options.scratch / "state").string()},
                 {"output", {{"dir", (options.scratch / "runs").string()}, {"name", "run"}}}};
  // A run that is killed then leaves nothing outside the scratch folder.
  if (IsSharedMemory(options.scratch))
    config["staging"] = {{"root", (options.scratch / "staging").string()}};
  return WriteText(options.scratch / "eval.yaml", config.dump(1));
}

Json ToJson(const BusyShare& share) {
  std::vector<std::pair<double, std::string>> kernels;
  for (const auto& [name, seconds] : share.kernel_seconds) kernels.emplace_back(seconds, name);
  std::sort(kernels.rbegin(), kernels.rend());
  kernels.resize(std::min(kernels.size(), kKernelsShown));
  Json longest = Json::array();
  for (const BusyShare::Gap& gap : share.longest) longest.push_back({gap.at_seconds, gap.seconds});
  return {{"share", share.share},
          {"window_seconds", share.window_seconds},
          {"busy_seconds", share.busy_seconds},
          {"copies_alone_seconds", share.copies_seconds},
          {"idle_seconds_by_gap",
           {{"to 10 us", share.gaps_seconds.at(0)},
            {"to 100 us", share.gaps_seconds.at(1)},
            {"to 1 ms", share.gaps_seconds.at(2)},
            {"to 10 ms", share.gaps_seconds.at(3)},
            {"to 100 ms", share.gaps_seconds.at(4)},
            {"longer", share.gaps_seconds.at(5)}}},
          {"longest_gaps_at_and_seconds", longest},
          {"kernels", kernels}};
}

}  // namespace

// A whole `evald run`, traced from outside by the driver's own records.
Result RunGpuIdle(const Options& options) {
  const fs::path checkpoint = GpuCheckpoint(options);
  const std::string uuid = UseBenchGpu(options).uuid;
  const fs::path library = options.binaries / "libevald-gpu-trace.so";
  if (!fs::exists(library)) {
    throw Error(ErrorKind::kInfrastructure, library.string() + " is missing",
                "it is built where CUPTI's header is found (docs/gpu.md)");
  }
  const native::ModelWeights weights(checkpoint, native::ReadModelConfig(checkpoint));
  const fs::path traces = options.scratch / "trace";
  fs::create_directories(traces);
  const fs::path config = WriteConfig(options, checkpoint, uuid);
  const fs::path log = options.scratch / "evald.log";
  // The scores do not matter, and the sandbox need not work here.
  const std::string script = R"("$0" run "$1" --json --quiet >"$2.results" 2>"$2"; echo $?)";
  CommandResult run;
  {
    const Environment environment(
        {{"CUDA_INJECTION64_PATH", library.string()}, {"EVALD_GPU_TRACE", traces.string()}});
    run = RunCommand({"/bin/sh", "-c", script, (options.binaries / "evald").string(),
                      config.string(), log.string()});
  }
  BusyShare best;
  for (const auto& [process, trace] : ReadActivity(traces)) {
    const BusyShare share = ShareBusy(trace, weights.mapped_bytes() / 100 * 99);
    if (share.window_seconds > best.window_seconds) best = share;
  }
  if (best.window_seconds == 0) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("no worker's kernels were recorded; evald run ended with {} and said: {}",
                    std::string(Trim(run.output)), ReadFile(log).substr(0, 2000)));
  }
  Result result;
  result.unit = "of the time";
  result.value = best.share;
  result.baseline =
      "all of it; kernels by CUPTI's records, from the last weight's copy to the last kernel";
  result.baseline_value = 1;
  result.target = 0.97;
  result.details = ToJson(best);
  result.details["fast"] = options.fast;
  result.details["evald_run_seconds"] = run.seconds;
  result.details["evald_run_status"] = std::string(Trim(run.output));
  return result;
}

}  // namespace evald::bench

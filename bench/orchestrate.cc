#include <fmt/format.h>

#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/run_evald.h"

namespace evald::bench {
namespace {

constexpr double kTargetPerSecond = 5000;
constexpr int kRounds = 3;

std::string Documents(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += fmt::format("{{\"question\": \"What is {} plus {}?\", \"answer\": \"{}\"}}\n", i,
                         i + 1, 2 * i + 1);
  }
  return lines;
}

}  // namespace

// 20,000 requests through a whole `evald run`: its start, preparation, two workers, two metric
// processes, the socket, files, the database and the results.
Result RunOrchestrate(const Options& options) {
  const int requests = options.quick ? 2000 : 20000;
  WriteText(options.scratch / "tasks" / "sums.jsonl", Documents(requests));
  WriteText(options.scratch / "tasks" / "sums.yaml", kSumsTask);
  const auto config = WriteText(options.scratch / "eval.yaml",
                                "tasks: [sums]\ntask_dirs: [tasks]\n"
                                "engine: {name: emulated, concurrency: 64, text: '{doc_id}'}\n"
                                "workers: {count: 2, threads: 1}\nmetrics: {processes: 2}\n"
                                "cache_dir: cache\nstate_dir: state\noutput: {dir: runs}\n");
  std::vector<double> rates, generate_rates, cpu;
  for (int round = 0; round < (options.quick ? 1 : kRounds); ++round) {
    std::filesystem::remove_all(options.scratch / "cache");
    const CommandResult run = RunCommand(
        {(options.binaries / "evald").string(), "run", config.string(), "--quiet", "--json"});
    rates.push_back(requests / run.seconds);
    cpu.push_back(run.cpu_seconds / requests * 1e6);
  }
  Result result;
  result.value = Median(rates);
  result.unit = "samples/s";
  result.baseline = "the bar for 2 cores";
  result.baseline_value = kTargetPerSecond;
  result.target = 1.0;
  result.details = {{"requests", requests}, {"rates", rates}, {"cpu_us_per_sample", Median(cpu)}};
  return result;
}

}  // namespace evald::bench

// vLLM, driven by evald and by others.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/engine_bench.h"
#include "bench/eval_run.h"
#include "bench/http_load.h"
#include "bench/run_evald.h"
#include "bench/service_process.h"
#include "evald/error.h"

namespace evald::bench {
namespace fs = std::filesystem;
namespace {

Result Skipped(const std::string& why) { return {.details = {{"skipped", why}}}; }

// The baseline: the harness, with the better of its two ways to vLLM.
Json HarnessOnVllm(const Options& options, const EvalWork& work, const fs::path& checkpoint) {
  const fs::path script = (options.binaries / "../../bench/vllm_baseline.py").lexically_normal();
  const std::string output =
      RunCommand({(options.vllm.parent_path() / "python").string(), script.string(),
                  checkpoint.string(), "--data-dir", options.data_dir.string(), "--documents",
                  std::to_string(work.documents), "--trial-documents", "1"})
          .output;
  const size_t begin = output.find("{\"seconds\"");
  if (begin == std::string::npos)
    throw Error(ErrorKind::kInfrastructure, script.string() + " printed no result");
  return ParseJson(output.substr(begin, output.find('\n', begin) - begin), script.string());
}

// A service on whose one worker runs come one after another.
class Warm {
 public:
  Warm(const Options& options, const fs::path& folder, const Json& engine)
      : folder_(folder), engine_(engine), service_(options.binaries / "evald", Written(folder)) {}

  /// Seconds from the begin of the checkpoint's load to its first answer, of one token, on disk.
  double FirstToken(const fs::path& checkpoint, Json* load) const {
    const Json config = {
        {"checkpoint", checkpoint.string()},
        {"tasks", {{{"task", "sums"}, {"limit", 1}, {"generation_kwargs", {{"max_gen_toks", 1}}}}}},
        {"task_dirs", {"tasks"}},
        {"engine", engine_}};
    const Json run =
        Ask("POST", "/v1/runs", ToLine({{"config", config}, {"base", folder_.string()}}));
    const std::string path = "/v1/runs/" + run.at("id").get<std::string>();
    Json now = run;
    while (now.at("ended").is_null()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      now = Ask("GET", path);
    }
    if (now.at("state") != "done")
      throw Error(ErrorKind::kInfrastructure, "the run ended as " + ToLine(now));
    const Json timeline = Ask("GET", path + "/timeline");
    // A span of generation under 100 ms is not written. The answer is there before its scoring
    // begins.
    const std::vector<Json> pulls = SpansOf(timeline, "pull"), scores = SpansOf(timeline, "score");
    if (pulls.empty() || scores.empty())
      throw Error(ErrorKind::kInfrastructure, "no load or no score in " + ToLine(timeline));
    *load = pulls[0].at("args");
    return (scores[0].at("ts").get<double>() - pulls[0].at("ts").get<double>()) / 1e6;
  }

 private:
  static fs::path Written(const fs::path& folder) {
    WriteText(folder / "tasks/sums.jsonl", "{\"question\": \"1 + 1\", \"answer\": \"2\"}\n");
    WriteText(folder / "tasks/sums.yaml", kSumsTask);
    const auto cores = std::max(1U, std::thread::hardware_concurrency());
    return WriteText(folder / "serve.yaml",
                     fmt::format("listen: 127.0.0.1:0\nstate_dir: state\ncache_dir: cache\n"
                                 "allow_commands: true\nworkers: {{count: 1, threads: {}}}\n"
                                 "metrics: {{processes: 1}}\n",
                                 cores));
  }

  Json Ask(const char* method, const std::string& path, const std::string& body = "") const {
    return ParseJson(HttpRequest(service_.port(), method, path, body), "the service's answer");
  }

  fs::path folder_;
  Json engine_;
  ServiceProcess service_;
};

fs::path MakeUntied(const Options& options, int seed) {
  const fs::path folder = options.scratch / fmt::format("step-{}", seed);
  const fs::path script = (options.binaries / "../../bench/make_checkpoint.py").lexically_normal();
  std::vector<std::string> command = {
      options.python.string(), script.string(), folder.string(), "--untied", "--seed",
      std::to_string(seed)};
  if (options.quick) command.push_back("--quick");
  RunCommand(command);
  return folder;
}

}  // namespace

// evald, then the harness, then evald again, each with a vLLM of its own. A time is that of the
// requests alone: the server is there, and has nothing in its prefix cache.
Result RunVllmChoice(const Options& options) {
  if (options.vllm.empty()) return Skipped("no vLLM; give --vllm");
  if (!fs::exists(options.data_dir))
    return Skipped(fmt::format("{}: no data; give --data-dir", options.data_dir.string()));
  const fs::path checkpoint = EngineCheckpoint(options);
  // The harness takes seconds for each choice.
  const EvalWork work = {kChoiceTasks, options.quick ? 1 : 2, 0};
  const Json engine = VllmEngine(options, "float32");
  const EvalRun first(options, work, checkpoint, engine);
  Json baseline = HarnessOnVllm(options, work, checkpoint);
  const EvalRun second(options, work, checkpoint, engine);

  Result result;
  result.unit = "s";
  result.smaller_is_better = true;
  result.target = 4;
  result.value = Median({first.answer_seconds(), second.answer_seconds()});
  result.baseline = "lm-evaluation-harness on the same vLLM, the better of its two ways";
  result.baseline_value = baseline.at("seconds").get<double>();
  CompareLogLikelihoods(first, baseline, &result);
  baseline.erase("answers");
  result.details["tasks"] = work.tasks;
  result.details["documents_of_each"] = work.documents;
  result.details["seconds"] = {first.answer_seconds(), second.answer_seconds()};
  result.details["seconds_of_whole_runs"] = {first.seconds(), second.seconds()};
  result.details["baseline"] = baseline;
  return result;
}

// Two checkpoints in turns: by exchanging weights, by new servers, by exchanging again.
Result RunVllmSwap(const Options& options) {
  if (options.vllm.empty()) return Skipped("no vLLM; give --vllm");
  if (options.python.empty()) return Skipped("no Python that makes checkpoints; give --python");
  const std::vector<fs::path> steps = {MakeUntied(options, 1), MakeUntied(options, 2)};
  Json loads = Json::array();
  std::vector<double> swaps, starts;
  const auto measure = [&](const char* name, bool swap, int rounds) {
    Json engine = VllmEngine(options, "auto");
    engine["swap"] = swap;
    const Warm warm(options, options.scratch / name, engine);
    for (int round = 0; round < rounds; ++round) {
      Json load;
      const double seconds = warm.FirstToken(steps[static_cast<size_t>(round % 2)], &load);
      const bool swapped = load.at("swapped").get<bool>();
      if (swapped != (swap && round > 0))
        throw Error(ErrorKind::kInfrastructure, "not as it was to be loaded: " + ToLine(load));
      if (round > 0) (swap ? swaps : starts).push_back(seconds);
      loads.push_back({{"first_token_s", seconds},
                       {"load_s", load.at("seconds")},
                       {"swapped", swapped},
                       {"parity", load.value("parity", Json())}});
    }
  };
  measure("first", true, 4);
  measure("restarts", false, 4);
  measure("second", true, 4);

  Result result;
  result.unit = "s";
  result.smaller_is_better = true;
  result.target = 20;
  result.value = Median(swaps);
  result.baseline = "a new server on the same checkpoint, its files in memory";
  result.baseline_value = Median(starts);
  result.details = {{"swaps", swaps}, {"starts", starts}, {"loads", loads}};
  return result;
}

}  // namespace evald::bench

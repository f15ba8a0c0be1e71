#include <fmt/format.h>

#include <map>

#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/engine_bench.h"
#include "bench/eval_run.h"
#include "bench/run_evald.h"
#include "evald/error.h"
#include "worker/native/cpu.h"

namespace evald::bench {
namespace fs = std::filesystem;
namespace {

struct Work : EvalWork {
  const char* name;  ///< the baseline has it too
  const char* dtypes;
  const char* batch_sizes;
};

Json Baseline(const Options& options, const Work& work, const fs::path& checkpoint) {
  const fs::path script = (options.binaries / "../../bench/engine_baseline.py").lexically_normal();
  std::vector<std::string> command = {options.python.string(),
                                      script.string(),
                                      work.name,
                                      checkpoint.string(),
                                      "--data-dir",
                                      options.data_dir.string(),
                                      "--documents",
                                      fmt::format("{}", work.documents),
                                      "--trial-documents",
                                      options.quick ? "1" : "2",
                                      "--dtypes",
                                      work.dtypes,
                                      "--batch-sizes",
                                      work.batch_sizes};
  if (work.max_gen_toks > 0) {
    command.insert(command.end(), {"--max-gen-toks", fmt::format("{}", work.max_gen_toks)});
  }
  if (work.max_gen_toks > 0 && !options.llama_server.empty()) {
    command.insert(command.end(), {"--server", options.llama_server});
  }
  const std::string output = RunCommand(command).output;
  return ParseJson(output.substr(output.find("{\"seconds\"")), script.string());
}

// The kernels that may take part. Log-likelihoods are compared with the baseline's in fp32, so bf16
// is only for generation.
std::vector<std::string> Kernels(const Work& work) {
  std::vector<std::string> kernels = {"auto"};
  if (work.max_gen_toks > 0 && native::HasBf16Products()) kernels.emplace_back("avx512_bf16");
  return kernels;
}

// vLLM's times for the same requests, by type. evald drives vLLM, without recomputing prefixes. A
// time is that of the requests alone.
Json MeasureVllm(const Options& options, const Work& work, const fs::path& checkpoint) {
  Json seconds = Json::object();
  for (const char* dtype : {"float32", "bfloat16"})
    seconds[dtype] =
        EvalRun(options, work, checkpoint, VllmEngine(options, dtype)).answer_seconds();
  return seconds;
}

void BaselineIsHarness(const Json& baseline, Result* result) {
  result->baseline = baseline.at("best").contains("server")
                         ? "llama.cpp's server, its requests alone"
                         : "lm-evaluation-harness's hf backend, its requests alone";
  result->baseline_value = baseline.at("seconds").get<double>();
}

void BaselineIsVllm(const Json& seconds, Result* result) {
  result->baseline = "vLLM driven by evald, the faster of its types, its requests alone";
  for (const auto& [dtype, taken] : seconds.items()) {
    const auto value = taken.get<double>();
    if (result->baseline_value > 0 && value >= result->baseline_value) continue;
    result->baseline_value = value;
    result->details["vllm_dtype"] = dtype;
  }
}

// Measures evald with each kernel, then the baselines, then evald again. The result is that of
// evald's fastest kernel.
Result Measure(const Options& options, const Work& work, double target) {
  if (!fs::exists(options.data_dir)) {
    return {.details = {{"skipped",
                         fmt::format("{}: no data; give --data-dir", options.data_dir.string())}}};
  }
  const fs::path checkpoint = EngineCheckpoint(options);
  Result result;
  result.unit = "s";
  result.smaller_is_better = true;
  result.target = target;
  result.baseline = "none: --python names no Python with lm_eval, and --vllm no vLLM";
  result.details = {{"tasks", work.tasks}, {"documents_of_each", work.documents}};
  std::map<std::string, std::vector<double>> seconds;
  std::vector<EvalRun> runs;
  const auto run_all = [&] {
    for (const std::string& kernels : Kernels(work)) {
      runs.emplace_back(options, work, checkpoint, Json{{"name", "native"}, {"kernels", kernels}});
      seconds[kernels].push_back(runs.back().seconds());
    }
  };
  run_all();
  if (!options.vllm.empty()) {
    result.details["vllm"] = MeasureVllm(options, work, checkpoint);
    BaselineIsVllm(result.details["vllm"], &result);
  }
  if (!options.python.empty()) {
    Json baseline = Baseline(options, work, checkpoint);
    BaselineIsHarness(baseline, &result);
    if (work.max_gen_toks == 0) CompareLogLikelihoods(runs.front(), baseline, &result);
    baseline.erase("answers");
    result.details["baselines"] = baseline;
  }
  if (result.baseline_value > 0) run_all();
  for (const auto& [kernels, taken] : seconds) {
    result.details["seconds"][kernels] = taken;
    if (result.value > 0 && Median(taken) >= result.value) continue;
    result.value = Median(taken);
    result.details["fastest"] = kernels;
  }
  return result;
}

// The documents of each task: the workload's own number, or that of --documents.
int Documents(const Options& options, int own, int quick) {
  if (options.quick) return quick;
  return options.documents > 0 ? options.documents : own;
}

}  // namespace

Result RunEngineChoice(const Options& options) {
  const Work work = {{kChoiceTasks, Documents(options, 25, 2), 0},
                     "choice",
                     "float32",
                     options.quick ? "4" : "1,4,16"};
  return Measure(options, work, 6);
}

Result RunEngineGenerate(const Options& options) {
  const Work work = {{{"humaneval", "gsm8k"}, Documents(options, 64, 2), options.quick ? 8 : 256},
                     "generate",
                     options.quick ? "float32" : "float32,bfloat16",
                     options.quick ? "4" : "16,64"};
  return Measure(options, work, 1.5);
}

}  // namespace evald::bench

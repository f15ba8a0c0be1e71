#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <tuple>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/engine_bench.h"
#include "bench/run_evald.h"
#include "evald/error.h"
#include "worker/native/cpu.h"

namespace evald::bench {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> kChoiceTasks = {"mmlu_astronomy", "mmlu_anatomy",
                                               "mmlu_high_school_world_history",
                                               "mmlu_elementary_mathematics"};

struct Work {
  const char* name;  ///< the baseline has it too
  std::vector<std::string> tasks;
  int documents = 0;  ///< of each task
  int max_gen_toks = 0;
  const char* dtypes;
  const char* batch_sizes;
};

// Scores by task, document and request.
using Scores = std::map<std::tuple<std::string, int64_t, int>, double>;

// `evald run` of the work, with its own files.
class Run {
 public:
  Run(const Options& options, const Work& work, const fs::path& checkpoint,
      const std::string& kernels, int round)
      : folder_(options.scratch / fmt::format("{}-{}-{}", work.name, kernels, round)), work_(work) {
    Json tasks = Json::array();
    for (const std::string& task : work.tasks) {
      Json entry = {{"task", task}, {"limit", work.documents}};
      if (work.max_gen_toks > 0) entry["generation_kwargs"] = {{"max_gen_toks", work.max_gen_toks}};
      tasks.push_back(entry);
    }
    const auto cores = std::max(1U, std::thread::hardware_concurrency());
    const Json config = {{"checkpoint", checkpoint.string()},
                         {"tasks", tasks},
                         {"data_dir", options.data_dir.string()},
                         {"engine", {{"name", "native"}, {"kernels", kernels}}},
                         {"workers", {{"count", 1}, {"threads", cores}}},
                         {"cache_dir", (folder_ / "cache").string()},
                         {"state_dir", (folder_ / "state").string()},
                         {"output", {{"dir", (folder_ / "runs").string()}, {"name", "run"}}}};
    const fs::path file = WriteText(folder_ / "eval.yaml", config.dump(1));
    seconds_ = RunCommand({(options.binaries / "evald").string(), "run", file.string(), "--json",
                           "--quiet"})
                   .seconds;
  }

  double seconds() const { return seconds_; }

  Scores LogLikelihoods() const {
    Scores scores;
    for (const std::string& task : work_.tasks) {
      for (const auto& entry : fs::directory_iterator(folder_ / "runs/run/generations" / task)) {
        ForEachJsonLine(entry.path(), [&](size_t, Json&& row) {
          scores[{task, row.at("doc_id").get<int64_t>(), row.at("idx").get<int>()}] =
              row.at("loglikelihood").get<double>();
        });
      }
    }
    return scores;
  }

 private:
  fs::path folder_;
  const Work& work_;
  double seconds_ = 0;
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

// The largest difference of log-likelihoods. Throws if one side lacks a request.
double LargestDifference(const Scores& ours, const Json& answers) {
  double largest = 0;
  for (const Json& row : answers) {
    const auto found = ours.find({row.at("task").get<std::string>(),
                                  row.at("doc_id").get<int64_t>(), row.at("idx").get<int>()});
    if (found == ours.end()) {
      throw Error(ErrorKind::kInternal, "evald gave no answer to " + ToLine(row));
    }
    const double difference = std::abs(found->second - row.at("loglikelihood").get<double>());
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  if (ours.size() != answers.size()) {
    throw Error(ErrorKind::kInternal, fmt::format("evald answered {} requests, the baseline {}",
                                                  ours.size(), answers.size()));
  }
  return largest;
}

// The kernels that may take part. Log-likelihoods are compared with the baseline's in fp32, so bf16
// is only for generation.
std::vector<std::string> Kernels(const Work& work) {
  std::vector<std::string> kernels = {"auto"};
  if (work.max_gen_toks > 0 && native::HasBf16Products()) kernels.emplace_back("avx512_bf16");
  return kernels;
}

// Checks evald's log-likelihoods against the baseline's. Throws if they differ.
void Compare(const Run& run, const Json& baseline, Result* result) {
  constexpr double kAtMost = 1e-3;
  const double largest = LargestDifference(run.LogLikelihoods(), baseline.at("answers"));
  result->details["largest_difference"] = largest;
  result->details["largest_difference_at_most"] = kAtMost;
  if (largest > kAtMost) {
    throw Error(ErrorKind::kInternal,
                fmt::format("log-likelihoods differ by {} from the baseline's", largest));
  }
}

// Measures evald with each kernel, then the baseline, then evald again. The result is that of
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
  result.details = {{"tasks", work.tasks}, {"documents_of_each", work.documents}};
  std::map<std::string, std::vector<double>> seconds;
  std::vector<Run> runs;
  const auto run_all = [&](int round) {
    for (const std::string& kernels : Kernels(work)) {
      runs.emplace_back(options, work, checkpoint, kernels, round);
      seconds[kernels].push_back(runs.back().seconds());
    }
  };
  run_all(1);
  if (options.python.empty()) {
    result.baseline =
        "none: --python names no Python with lm_eval; docs/performance.md has the recorded ratio";
  } else {
    Json baseline = Baseline(options, work, checkpoint);
    result.baseline = baseline.at("best").contains("server")
                          ? "llama.cpp's server, its requests alone"
                          : "lm-evaluation-harness's hf backend, its requests alone";
    result.baseline_value = baseline.at("seconds").get<double>();
    run_all(2);
    if (work.max_gen_toks == 0) Compare(runs.front(), baseline, &result);
    baseline.erase("answers");
    result.details["baselines"] = baseline;
  }
  for (const auto& [kernels, taken] : seconds) {
    result.details["seconds"][kernels] = taken;
    if (result.value > 0 && Median(taken) >= result.value) continue;
    result.value = Median(taken);
    result.details["fastest"] = kernels;
  }
  return result;
}

}  // namespace

Result RunEngineChoice(const Options& options) {
  const Work work = {"choice", kChoiceTasks, options.quick ? 2 : 25,
                     0,        "float32",    options.quick ? "4" : "1,4,16"};
  return Measure(options, work, 6);
}

Result RunEngineGenerate(const Options& options) {
  const Work work = {"generate",
                     {"humaneval", "gsm8k"},
                     options.quick ? 2 : 64,
                     options.quick ? 8 : 256,
                     options.quick ? "float32" : "float32,bfloat16",
                     options.quick ? "4" : "16,64"};
  return Measure(options, work, 1.5);
}

}  // namespace evald::bench

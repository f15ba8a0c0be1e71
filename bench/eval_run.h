#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "bench/bench.h"
#include "evald/json.h"

namespace evald::bench {

/// Four tasks of MMLU, for the benchmarks of few-shot multiple choice.
extern const std::vector<std::string> kChoiceTasks;

/// Documents that a benchmark evaluates.
struct EvalWork {
  std::vector<std::string> tasks;  ///< of `Options::data_dir`
  int documents = 0;               ///< of each task, the first ones
  int max_gen_toks = 0;            ///< 0: the task's own
};

/// One `evald run`, on all cores of this machine, with files of its own in the scratch folder.
class EvalRun {
 public:
  /// Runs to the end. `engine` is the section of eval.yaml. Throws Error(kInfrastructure) if the
  /// run does not end with status 0.
  EvalRun(const Options& options, const EvalWork& work, const std::filesystem::path& checkpoint,
          const Json& engine);

  double seconds() const { return seconds_; }  ///< of the whole command
  /// From the end of the engine's load to the last answer, by the run's timeline.
  double answer_seconds() const;

  /// Log-likelihoods by task, document and request.
  std::map<std::tuple<std::string, int64_t, int>, double> LogLikelihoods() const;

 private:
  std::filesystem::path folder_;
  EvalWork work_;
  double seconds_ = 0;
};

/// Compares the run's log-likelihoods with a baseline's "answers": objects with "task", "doc_id",
/// "idx" and "loglikelihood". Notes the largest difference and its limit in the result. Throws
/// Error(kInternal) if one side lacks a request, or if the difference is larger.
void CompareLogLikelihoods(const EvalRun& run, const Json& baseline, Result* result);

/// The section `engine` for vLLM in this type of weights. `--vllm` names its program.
Json VllmEngine(const Options& options, const std::string& dtype);

/// The spans with this name in a timeline (timeline.json of a run), in its order.
std::vector<Json> SpansOf(const Json& timeline, const std::string& name);
/// The end of a span, in the timeline's microseconds.
double EndOf(const Json& span);

}  // namespace evald::bench

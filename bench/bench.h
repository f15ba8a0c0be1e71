#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::bench {

/// The measurement of a workload. `ratio` is the value over the baseline (larger is better; for
/// times the inverse). The caller of the workload computes it unless it is set.
struct Result {
  double value = 0;
  std::string unit;      ///< "GB/s", "samples/s", "s"
  std::string baseline;  ///< the thing compared with, in words
  double baseline_value = 0;
  bool smaller_is_better = false;
  double target = 0;              ///< the ratio to reach
  Json details = Json::object();  ///< every further figure
};

struct Options {
  std::filesystem::path binaries;    ///< folder of evald, evald-worker, evald-metric
  std::filesystem::path data_dir;    ///< real benchmark data; may not exist
  std::filesystem::path checkpoint;  ///< checkpoint of the engine workloads; empty: made in the run
  std::filesystem::path python;      ///< for baselines: has numpy, tokenizers, lm_eval; or empty
  /// the `vllm` program; for vllm-choice the `python` beside it has lm_eval; or empty
  std::filesystem::path vllm;
  std::string llama_server;       ///< address of a server with the same checkpoint; may be empty
  std::filesystem::path scratch;  ///< an empty folder for the workload's files
  std::string gpu;                ///< UUID of the GPU to measure; empty: the first visible one
  /// file to which gpu-generate writes its requests' lengths; or empty
  std::filesystem::path lengths;
  int concurrency = 0;  ///< of gpu-generate; 0: several, one after the other
  bool fast = false;    ///< the GPU engine may let numbers depend on the batch
  bool graphs = true;   ///< the GPU engine captures batches of decoding as graphs
  int documents = 0;    ///< of each task of an engine workload; 0: the workload's own number
  bool quick = false;   ///< a small size, to check that the workload works
};

struct Workload {
  const char* name;
  const char* summary;
  Result (*run)(const Options& options);
};

/// A task with one short answer a document, read from sums.jsonl beside it ("question", "answer").
inline constexpr const char* kSumsTask = R"(task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\n"], max_gen_toks: 16, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
)";

Result RunStage(const Options& options);
Result RunOverlap(const Options& options);
Result RunOrchestrate(const Options& options);
Result RunSandbox(const Options& options);
Result RunServe(const Options& options);
Result RunEmulate(const Options& options);
Result RunSchedule(const Options& options);
Result RunEnginePrefill(const Options& options);
Result RunEngineDecode(const Options& options);
Result RunEngineChoice(const Options& options);
Result RunEngineGenerate(const Options& options);
Result RunTokenize(const Options& options);
Result RunVllmChoice(const Options& options);
Result RunVllmSwap(const Options& options);

}  // namespace evald::bench

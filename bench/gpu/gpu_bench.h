#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "bench/gpu/limits.h"
#include "worker/engine.h"
#include "worker/native/cuda/runtime.h"

namespace evald::bench {

Result RunPull(const Options& options);
Result RunSwap(const Options& options);
Result RunGpuGenerate(const Options& options);
Result RunGpuChoice(const Options& options);
Result RunGpuIdle(const Options& options);
Result RunProducts(const Options& options);

/// The GPU that --gpu names, or the first visible one, made current for this thread. Throws
/// Error(kInfrastructure) where there is none.
native::cuda::GpuInfo UseBenchGpu(const Options& options);

/// The checkpoint that --checkpoint names. Throws Error(kUsage) without one.
std::filesystem::path GpuCheckpoint(const Options& options);

LimitSizes SizesOf(const Options& options);

/// The native engine on that GPU, nothing loaded. `settings` as under `engine:` in eval.yaml.
std::unique_ptr<Engine> GpuEngine(const Options& options, Json settings);

/// What an engine made of requests, all submitted at once.
struct Answered {
  double seconds = 0;        ///< from the first request until the last answer
  double first_seconds = 0;  ///< until the first answer
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  std::vector<Generation> generations;  ///< in the requests' order
};
Answered AnswerAll(Engine* engine, const std::vector<Request>& requests);

/// A model's arithmetic, of checkpoints whose config.json is spelled as Llama's.
struct Workout {
  double layer_weights = 0;  ///< elements of the matrices of all layers
  double head_weights = 0;
  double query_size = 0;  ///< heads times head size
  double kv_size = 0;
  double layers = 0;
  int vocab_size = 0;

  explicit Workout(const std::filesystem::path& checkpoint);
  /// Multiplications and additions of `rows` tokens that see `pairs` positions together (each its own
  /// included), the logits of `heads` of them wanted.
  double Flops(double rows, double pairs, double heads) const;
  double WeightBytes() const { return 2 * (layer_weights + head_weights); }
  /// Bytes of keys and values, in bf16, of so many positions.
  double KvBytes(double positions) const { return 4 * kv_size * layers * positions; }
};

}  // namespace evald::bench

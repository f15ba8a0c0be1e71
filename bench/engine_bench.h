#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "worker/engine.h"

namespace evald::bench {

/// The checkpoint of the engine workloads: --checkpoint, or one of Qwen2.5-0.5B's shape that
/// bench/make_checkpoint.py makes in the scratch folder, which needs --python. Throws Error(kUsage)
/// when neither is given.
std::filesystem::path EngineCheckpoint(const Options& options);

/// What the rates are computed from, read from config.json.
struct ModelShape {
  double layer_weights = 0;  ///< elements of the matrices of all layers
  double head_weights = 0;   ///< of the matrix that gives the logits
  double query_size = 0;     ///< heads times head size
  double kv_size = 0;        ///< key-value heads times head size
  double layers = 0;
  int vocab_size = 0;

  explicit ModelShape(const std::filesystem::path& checkpoint);
  /// Multiplications and additions of a prompt whose last token's logits are wanted; of attention
  /// only what the causal mask leaves.
  double PromptFlops(double tokens) const;
  /// Bytes that one more token at `position` must read: bf16 weights, fp32 keys and values.
  double TokenBytes(double position) const;
};

/// The native engine on all cores, loaded. `settings` as under `engine:` in eval.yaml.
std::unique_ptr<Engine> LoadedEngine(const std::filesystem::path& checkpoint, const Json& settings);

/// Seconds from the submission of these requests until the last answer.
double Answer(Engine* engine, const std::vector<Request>& requests);

/// Tokens that have no prefix in common with those of another seed.
std::vector<int32_t> RandomTokens(int count, int vocab_size, uint64_t seed);

/// A product of oneDNN, [m][k] times [k][n], in fp32 or from bf16 into fp32.
struct OneDnnProduct {
  int64_t m = 0, n = 0, k = 0;
  bool bf16 = false;
};
/// The fastest of a few large ones on all cores here.
OneDnnProduct FastestOneDnnProduct();
/// Its GFLOP/s over `seconds`; 0 when evald was built without oneDNN.
double OneDnnRate(const OneDnnProduct& product, double seconds);
std::string OneDnnVersion();  ///< "" when built without it

}  // namespace evald::bench

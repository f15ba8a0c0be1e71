#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "worker/engine/engine.h"

namespace evald::bench {

/// The checkpoint of the engine workloads: --checkpoint, or else one of Qwen2.5-0.5B's shape.
/// bench/make_checkpoint.py makes that one in the scratch folder and needs --python. Throws
/// Error(kUsage) if neither option is given.
std::filesystem::path EngineCheckpoint(const Options& options);

/// The sizes from which rates are computed, read from config.json.
struct ModelShape {
  double layer_weights = 0;  ///< elements of the matrices of all layers
  double head_weights = 0;   ///< of the matrix that gives the logits
  double query_size = 0;     ///< heads times head size
  double kv_size = 0;        ///< key-value heads times head size
  double layers = 0;
  int vocab_size = 0;

  explicit ModelShape(const std::filesystem::path& checkpoint);
  /// Multiplications and additions for `rows` tokens that attend to `pairs` positions together
  /// (each token's own included), with logits for `heads` of them.
  double Flops(double rows, double pairs, double heads) const;
  /// The same for a prompt with logits for its last token.
  double PromptFlops(double tokens) const { return Flops(tokens, tokens * (tokens + 1) / 2, 1); }
  /// Bytes of the weights in bf16.
  double WeightBytes() const { return 2 * (layer_weights + head_weights); }
  /// Bytes of keys and values of that many positions, in bf16.
  double KvBytes(double positions) const { return 4 * kv_size * layers * positions; }
  /// Bytes that one more token at `position` must read: bf16 weights, fp32 keys and values.
  double TokenBytes(double position) const { return WeightBytes() + 2 * KvBytes(position + 1); }
};

/// The native engine on all cores, loaded. `settings` as under `engine:` in eval.yaml.
std::unique_ptr<Engine> LoadedEngine(const std::filesystem::path& checkpoint, const Json& settings);

/// An engine's answers to requests that were all submitted at once.
struct Answered {
  double seconds = 0;        ///< from the first request until the last answer
  double first_seconds = 0;  ///< until the first answer
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  std::vector<Generation> generations;  ///< in the requests' order
};
Answered AnswerAll(Engine* engine, const std::vector<Request>& requests);

/// Random tokens. Those of different seeds have no common prefix.
std::vector<int32_t> RandomTokens(int count, int vocab_size, uint64_t seed);

/// A product of oneDNN, [m][k] times [k][n], in fp32 or from bf16 into fp32.
struct OneDnnProduct {
  int64_t m = 0, n = 0, k = 0;
  bool bf16 = false;
};
/// The fastest of a few large products on all cores of this machine.
OneDnnProduct FastestOneDnnProduct();
/// The product's GFLOP/s over `seconds`; 0 if evald was built without oneDNN.
double OneDnnRate(const OneDnnProduct& product, double seconds);
std::string OneDnnVersion();  ///< "" when built without it

}  // namespace evald::bench

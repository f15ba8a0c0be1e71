#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"
#include "worker/native/activation.h"

namespace evald::native {

struct Family;

/// How rotary position embeddings are scaled (transformers, modeling_rope_utils).
/// kDynamic does nothing within max_positions, and longer requests are not served.
enum class RopeType { kDefault, kLinear, kLlama3, kYarn, kDynamic };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000;
  double factor = 1;              ///< all but kDefault
  double low_freq_factor = 1;     ///< kLlama3
  double high_freq_factor = 4;    ///< kLlama3
  double original_positions = 0;  ///< kLlama3, kYarn: the context before scaling, in tokens
  double beta_fast = 32;          ///< kYarn
  double beta_slow = 1;           ///< kYarn
  bool truncate = true;           ///< kYarn: the ramp's ends are whole dimensions
  double attention_factor = 1;    ///< kYarn: multiplies cosines and sines
  /// The share of a head as config.json has it, in dimensions: frequencies are over these. Where it
  /// is odd, one dimension more is rotated (ModelConfig::rotary_dim), as in transformers.
  int64_t dim = 0;

  bool operator==(const RopeConfig&) const = default;
};

/// What normalizes a row: x / rms(x) * weight, or (x - mean) / deviation * weight + bias.
enum class NormKind { kRms, kLayer };

/// Queries and keys are normalized before they are rotated: each head by itself, or all together.
enum class HeadNorm { kNone, kEach, kWhole };

/// A mixture of experts: each token's feed-forward part is the weighted sum of some experts'.
struct ExpertsConfig {
  int64_t count = 0;  ///< 0: no mixture in any layer
  int64_t per_token = 0;
  int64_t intermediate_size = 0;
  bool normalize = false;  ///< the chosen experts' weights are made to add up to 1

  bool operator==(const ExpertsConfig&) const = default;
};

/// The shape of a model, from config.json. All sizes are positive and bounded, heads is a multiple
/// of kv_heads and rotary_dim is even.
struct ModelConfig {
  const Family* family = nullptr;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;     ///< leading dimensions of a head that are rotated
  int64_t max_positions = 0;  ///< max_position_embeddings
  /// Tokens of context, as lm_eval's resolve_max_length finds them: n_positions, which no family's
  /// class knows, goes before max_position_embeddings.
  int64_t context = 0;
  NormKind norm = NormKind::kRms;
  double norm_eps = 1e-6;
  HeadNorm head_norm = HeadNorm::kNone;
  Activation activation = Activation::kSilu;
  bool gated = true;             ///< activation(gate(x)) * up(x), else activation(up(x))
  bool parallel = false;         ///< feed-forward beside attention, not after it
  bool tied_embeddings = false;  ///< the output matrix is the embedding
  bool qkv_bias = false;
  bool output_bias = false;  ///< of the attention's output matrix
  bool mlp_bias = false;
  std::vector<int64_t> windows;  ///< by layer: positions that a token sees, itself included; 0: all
  /// Positions up to which generated tokens see in the cache of transformers' generate() all that
  /// `windows` let them see (families/windows.h). Longer texts are not served. 0: any number.
  int64_t generation_positions = 0;
  ExpertsConfig experts;
  std::vector<bool> sparse;  ///< by layer: has experts
  RopeConfig rope;

  int64_t query_size() const { return heads * head_dim; }
  int64_t kv_size() const { return kv_heads * head_dim; }
  int64_t qkv_size() const { return query_size() + 2 * kv_size(); }
  int64_t group() const { return heads / kv_heads; }
  bool operator==(const ModelConfig&) const = default;
};

/// Reads `directory`/config.json. Takes the keys on today's hub (rope_theta, rope_scaling) and
/// those of transformers 5 (rope_parameters), with the defaults of the family's configuration class
/// there. Throws Error(kInput) naming file, key, what was found and what is expected for a size
/// that is absent, not positive, enormous or disagrees with another; and names an architecture,
/// activation, rope scaling or quantisation that is not served.
ModelConfig ReadModelConfig(const std::filesystem::path& directory);

/// The same from parsed JSON; `where` names the file in errors.
ModelConfig ParseModelConfig(const Json& json, const std::string& where);

}  // namespace evald::native

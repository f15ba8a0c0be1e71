#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/json.h"
#include "worker/native/activation.h"

namespace evald::native {

struct Family;

/// How rotary position embeddings are scaled (transformers, modeling_rope_utils). kDynamic does
/// nothing within max_positions; longer requests are not supported.
enum class RopeType { kDefault, kLinear, kLlama3, kYarn, kDynamic };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000;
  double factor = 1;              ///< all except kDefault
  double low_freq_factor = 1;     ///< kLlama3
  double high_freq_factor = 4;    ///< kLlama3
  double original_positions = 0;  ///< kLlama3, kYarn: the context before scaling, in tokens
  double beta_fast = 32;          ///< kYarn
  double beta_slow = 1;           ///< kYarn
  bool truncate = true;           ///< kYarn: the ramp's ends are rounded to whole dimensions
  double attention_factor = 1;    ///< kYarn: multiplies cosines and sines
  /// The number of rotated dimensions of a head, as config.json gives it. The frequencies are
  /// computed from this number. If it is odd, one dimension more is rotated
  /// (ModelConfig::rotary_dim), as in transformers.
  int64_t dim = 0;

  bool operator==(const RopeConfig&) const = default;
};

/// The normalization of a row: x / rms(x) * (norm_offset + weight), or (x - mean) / deviation *
/// weight + bias.
enum class NormKind { kRms, kLayer };

/// Normalization of queries and keys before the rotation: none, each head by itself, or all
/// together.
enum class HeadNorm { kNone, kEach, kWhole };

/// A mixture of experts: each token's feed-forward part is a weighted sum of the outputs of some
/// experts.
struct ExpertsConfig {
  int64_t count = 0;  ///< 0: no mixture in any layer
  int64_t per_token = 0;
  int64_t intermediate_size = 0;
  bool normalize = false;  ///< the chosen experts' weights are scaled to add up to 1

  bool operator==(const ExpertsConfig&) const = default;
};

/// The shape of a model, from config.json. All sizes are positive and bounded, heads is a multiple
/// of kv_heads, and rotary_dim is even.
struct ModelConfig {
  const Family* family = nullptr;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  double query_scalar = 0;     ///< queries are divided by its root; 0: by that of head_dim
  double attention_cap = 0;    ///< scores become cap * tanh(score / cap); 0: they stay
  double logits_cap = 0;       ///< likewise the logits
  double embedding_scale = 1;  ///< of the embedding's rows as input
  int64_t rotary_dim = 0;      ///< leading dimensions of a head that are rotated
  int64_t max_positions = 0;   ///< max_position_embeddings
  /// Tokens of context, as in lm_eval's resolve_max_length. If config.json has n_positions, that is
  /// used instead of max_position_embeddings, although transformers' configuration classes of these
  /// families have no such key.
  int64_t context = 0;
  NormKind norm = NormKind::kRms;
  double norm_eps = 1e-6;
  double norm_offset = 0;  ///< added to the stored weights of every norm
  HeadNorm head_norm = HeadNorm::kNone;
  Activation activation = Activation::kSilu;
  bool gated = true;             ///< activation(gate(x)) * up(x); otherwise activation(up(x))
  bool parallel = false;         ///< feed-forward beside attention, not after it
  bool tied_embeddings = false;  ///< the output matrix is the embedding
  bool qkv_bias = false;
  bool output_bias = false;  ///< in the attention's output matrix
  bool mlp_bias = false;
  /// For each layer, the number of positions that a token sees, including its own; 0: all
  std::vector<int64_t> windows;
  /// transformers' generate() keeps a limited cache. Up to this many positions, that cache holds
  /// everything that `windows` allows a token to see (families/windows.h). Longer generations are
  /// not supported. 0: no limit.
  int64_t generation_positions = 0;
  ExpertsConfig experts;
  std::vector<bool> sparse;  ///< for each layer: whether it has experts
  RopeConfig rope;
  std::optional<RopeConfig> local_rope;  ///< of layers with a window; absent: as `rope`

  int64_t query_size() const { return heads * head_dim; }
  int64_t kv_size() const { return kv_heads * head_dim; }
  int64_t qkv_size() const { return query_size() + 2 * kv_size(); }
  int64_t group() const { return heads / kv_heads; }
  /// The factor of the products of queries and keys.
  float query_scale() const {
    return query_scalar == 0 ? 1.0f / std::sqrt(static_cast<float>(head_dim))
                             : static_cast<float>(1 / std::sqrt(query_scalar));
  }
  /// Whether the layer is rotated by local_rope.
  bool IsLocal(int64_t layer) const {
    return local_rope.has_value() && windows[static_cast<size_t>(layer)] > 0;
  }
  bool operator==(const ModelConfig&) const = default;
};

/// Reads config.json of a checkpoint. Accepts the keys of files on the Hugging Face hub today
/// (rope_theta, rope_scaling) and those of transformers 5 (rope_parameters). A missing key gets the
/// default of the family's configuration class in transformers.
///
/// Throws Error(kInput) if a size is absent, not positive, enormous or contradicts another, or if
/// the architecture, activation, rope scaling or quantisation is not supported. The error names the
/// file, the key, the value found and the value expected.
ModelConfig ReadModelConfig(const ReadFolder& folder);

/// The context length in tokens: `max_length`, the engine's setting, or if that is 0 the
/// checkpoint's. Throws Error(kUsage) for a max_length beyond the checkpoint's. `directory` names
/// the checkpoint in errors.
int64_t ContextOf(const ModelConfig& config, int64_t max_length, const std::string& directory);

/// The same as ReadModelConfig, from parsed JSON. `where` names the file in errors.
ModelConfig ParseModelConfig(const Json& json, const std::string& where);

}  // namespace evald::native

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::native {

/// How rotary position embeddings are scaled.
enum class RopeType { kDefault, kLinear, kLlama3 };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000;
  double factor = 1;              ///< kLinear, kLlama3
  double low_freq_factor = 1;     ///< kLlama3
  double high_freq_factor = 4;    ///< kLlama3
  double original_positions = 0;  ///< kLlama3: the context length before scaling, in tokens
};

/// The shape of a Llama-architecture model, from config.json. All sizes are positive and bounded,
/// heads is a multiple of kv_heads and head_dim is even.
struct LlamaConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;
  double rms_norm_eps = 1e-6;
  bool tied_embeddings = false;  ///< the output matrix is the embedding
  bool attention_bias = false;
  bool mlp_bias = false;
  RopeConfig rope;
  std::vector<int32_t> eos_ids;  ///< eos_token_id: none, one or several

  int64_t query_size() const { return heads * head_dim; }
  int64_t kv_size() const { return kv_heads * head_dim; }
  int64_t group() const { return heads / kv_heads; }
};

/// Reads `directory`/config.json. Takes today's keys (rope_theta, rope_scaling) and those of
/// transformers 5 (rope_parameters), with the defaults of its LlamaConfig. Throws Error(kInput)
/// naming file, key, what was found and what is expected for a size that is absent, not positive,
/// enormous or disagrees with another; and names an architecture, activation, rope scaling or
/// quantisation that is not served.
LlamaConfig ReadLlamaConfig(const std::filesystem::path& directory);

/// The same from parsed JSON; `where` names the file in errors.
LlamaConfig ParseLlamaConfig(const Json& json, const std::string& where);

/// eos_token_id of config.json or generation_config.json: absent, null, an integer or a list.
std::vector<int32_t> ParseEosIds(const Json& json, const std::string& where);

}  // namespace evald::native

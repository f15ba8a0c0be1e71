#pragma once

#include <string>
#include <vector>

#include "worker/native/config.h"
#include "worker/native/config_reader.h"
#include "worker/native/rope_config.h"

namespace evald::native {

/// Names of a family's tensors, without ".weight" and ".bias"; those of a layer follow
/// "<layers>.<index>.". Null where a family has no such tensor.
struct TensorNames {
  const char* embedding = "model.embed_tokens";
  const char* norm = "model.norm";
  const char* head = "lm_head";
  const char* layers = "model.layers";
  const char* attention_norm = "input_layernorm";     ///< of the attention's input
  const char* attention_after_norm = nullptr;         ///< of its output
  const char* mlp_norm = "post_attention_layernorm";  ///< of the feed-forward part's input
  const char* mlp_after_norm = nullptr;               ///< of its output
  const char* query = "self_attn.q_proj";
  const char* key = "self_attn.k_proj";
  const char* value = "self_attn.v_proj";
  /// One matrix in place of query, key and value: for each key-value head its group of query heads,
  /// its key head and its value head.
  const char* packed = nullptr;
  const char* query_norm = "self_attn.q_norm";
  const char* key_norm = "self_attn.k_norm";
  const char* output = "self_attn.o_proj";
  const char* gate = "mlp.gate_proj";
  const char* up = "mlp.up_proj";
  const char* down = "mlp.down_proj";
  const char* router = "mlp.gate";      ///< of a layer with experts
  const char* experts = "mlp.experts";  ///< "<experts>.<index>.{gate,up,down}_proj"
  /// Ends of the names of tensors that old versions wrote and nobody reads.
  std::vector<const char*> passed_over = {".rotary_emb.inv_freq"};
};

/// Which layers of a family attend within a window.
enum class WindowRule {
  kNone,
  kMistral,  ///< all within sliding_window; those that layer_types names where the key is there
  kQwen,     ///< the last ones, or those that layer_types names, where use_sliding_window is true
  kQwenMoe,  ///< all where use_sliding_window is true
};

/// One architecture of decoder: what its config.json and its tensors are like.
struct Family {
  const char* architecture;  ///< in config.json's "architectures"
  const char* model_type;    ///< "model_type" there
  TensorNames names;
  /// Fills in all but family and windows. Throws Error(kInput).
  void (*read)(const ConfigReader& reader, ModelConfig* config);
  WindowRule windows = WindowRule::kNone;
};

extern const Family kLlama, kMistral, kQwen2, kQwen3, kQwen3Moe, kInternLm2, kGptNeoX, kOlmo2;

/// All families that are served.
const std::vector<const Family*>& Families();

/// Sizes of a model whose config.json lacks the keys: those of the family's class in
/// transformers 5.23. 0: the key is required.
struct DefaultSizes {
  int64_t vocab = 0;         ///< vocab_size
  int64_t hidden = 0;        ///< hidden_size
  int64_t intermediate = 0;  ///< intermediate_size
  int64_t layers = 0;        ///< num_hidden_layers
  int64_t heads = 0;         ///< num_attention_heads
};

/// What most families have in common.
struct CommonDefaults {
  DefaultSizes sizes = {};
  int64_t max_positions = 2048;  ///< max_position_embeddings
  int64_t kv_heads = 0;          ///< num_key_value_heads where the key is absent; 0: all heads
  int64_t head_dim = 0;          ///< where the key is absent; 0: hidden_size / heads
  double norm_eps = 1e-6;        ///< rms_norm_eps
  bool packed_heads =
      false;  ///< each head has its own key and value: num_key_value_heads and head_dim say nothing
  RopeDefaults rope = {};
};

/// Reads sizes, the context length, heads, rms_norm_eps, tie_word_embeddings, the activation and
/// the rope under the names that transformers gives them.
void ReadCommon(const ConfigReader& reader, const CommonDefaults& defaults, ModelConfig* config);

}  // namespace evald::native

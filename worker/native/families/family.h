#pragma once

#include <string>
#include <vector>

#include "worker/native/config.h"
#include "worker/native/config_reader.h"
#include "worker/native/rope_config.h"

namespace evald::native {

/// Names of a family's tensors, without ".weight" and ".bias". Those of a layer follow
/// "<layers>.<index>.". Null if the family has no such tensor.
struct TensorNames {
  const char* embedding = "model.embed_tokens";
  const char* norm = "model.norm";
  const char* head = "lm_head";
  const char* other_head = nullptr;  ///< the head's name in some checkpoints
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
  /// Suffixes of tensors that old versions wrote and that are never read.
  std::vector<const char*> passed_over = {".rotary_emb.inv_freq"};
};

/// The layers of a family that attend within a window.
enum class WindowRule {
  kNone,
  kMistral,  ///< all layers within sliding_window; with layer_types, the layers that it names
  kQwen,     ///< if use_sliding_window: the last layers, or those that layer_types names
  kQwenMoe,  ///< if use_sliding_window: all layers
  kGemma2,   ///< the layers that layer_types names, else the first of each two
  kGemma3,   ///< likewise, else all but the last of each sliding_window_pattern
};

/// One architecture of decoder: the form of its config.json and its tensors.
struct Family {
  const char* architecture;  ///< in config.json's "architectures"
  const char* model_type;    ///< "model_type" there
  TensorNames names;
  /// Fills in everything except family and windows. Throws Error(kInput).
  void (*read)(const ConfigReader& reader, ModelConfig* config);
  WindowRule windows = WindowRule::kNone;
};

extern const Family kLlama, kMistral, kQwen2, kQwen3, kQwen3Moe, kInternLm2, kGptNeoX, kOlmo2,
    kGemma2, kGemma3;

/// All supported families.
const std::vector<const Family*>& Families();

/// Sizes of a model whose config.json lacks the keys: those of the family's class in transformers
/// 5.23. 0: the key is required.
struct DefaultSizes {
  int64_t vocab = 0;         ///< vocab_size
  int64_t hidden = 0;        ///< hidden_size
  int64_t intermediate = 0;  ///< intermediate_size
  int64_t layers = 0;        ///< num_hidden_layers
  int64_t heads = 0;         ///< num_attention_heads
};

/// Properties that most families share.
struct CommonDefaults {
  DefaultSizes sizes = {};
  int64_t max_positions = 2048;  ///< max_position_embeddings
  int64_t kv_heads = 0;          ///< num_key_value_heads if the key is absent; 0: all heads
  int64_t head_dim = 0;          ///< if the key is absent; 0: hidden_size / heads
  double norm_eps = 1e-6;        ///< rms_norm_eps
  /// Each head has its own key and value; num_key_value_heads and head_dim are ignored
  bool packed_heads = false;
  bool tied_embeddings = false;  ///< tie_word_embeddings
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  RopeDefaults rope = {};
  const LayerRope* global_rope = nullptr;  ///< of the layers without a window, in place of `rope`
};

/// Reads sizes, the context length, heads, rms_norm_eps, tie_word_embeddings, the activation and
/// the rope under transformers' names.
void ReadCommon(const ConfigReader& reader, const CommonDefaults& defaults, ModelConfig* config);

}  // namespace evald::native

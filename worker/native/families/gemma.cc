#include "worker/native/families/gemma.h"

#include <cmath>

namespace evald::native {

CommonDefaults GemmaDefaults() {
  return {.sizes = {.hidden = 2304, .intermediate = 9216, .layers = 26, .heads = 8},
          .kv_heads = 4,
          .head_dim = 256,
          .tied_embeddings = true,
          .activation_key = "hidden_activation",
          .activation = "gelu_pytorch_tanh"};
}

TensorNames GemmaNames() {
  TensorNames names;
  names.attention_after_norm = "post_attention_layernorm";
  names.mlp_norm = "pre_feedforward_layernorm";
  names.mlp_after_norm = "post_feedforward_layernorm";
  return names;
}

double ReadCap(const ConfigReader& reader, const char* key, double otherwise) {
  if (!reader.json().contains(key)) return otherwise;
  return reader.Has(key) ? reader.Positive(key) : 0;
}

void ReadGemma(const ConfigReader& reader, const CommonDefaults& defaults, ModelConfig* config) {
  ReadCommon(reader, defaults, config);
  if (reader.FlagOr("use_bidirectional_attention", false)) {
    reader.Refuse("use_bidirectional_attention",
                  "false: a model whose tokens see later ones is not served");
  }
  if (config->hidden_size % config->heads != 0) {  // as the class demands, whatever head_dim is
    reader.Refuse("hidden_size", "a multiple of num_attention_heads");
  }
  config->norm_offset = 1;
  config->embedding_scale = std::sqrt(static_cast<double>(config->hidden_size));
  config->query_scalar = reader.PositiveOr("query_pre_attn_scalar", 256);
  config->qkv_bias = config->output_bias = reader.FlagOr("attention_bias", false);
}

}  // namespace evald::native

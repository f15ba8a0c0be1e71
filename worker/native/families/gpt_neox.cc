// GPT-NeoX and Pythia: layer norms, attention beside feed-forward, part of each head rotated, no
// gate (transformers, models/gpt_neox).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void ReadGptNeoX(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 50432, .hidden = 6144, .intermediate = 24576, .layers = 44, .heads = 64};
  const RopeDefaults rope = {.theta_key = "rotary_emb_base",
                             .partial = 0.25,
                             .partial_key = "rotary_pct",
                             .head_dim_key = "head_dim"};
  ReadCommon(reader, {.sizes = kSizes, .packed_heads = true, .activation = "gelu", .rope = rope},
             config);
  config->norm = NormKind::kLayer;
  config->norm_eps = reader.NotNegativeOr("layer_norm_eps", 1e-5);
  config->gated = false;
  config->parallel = reader.FlagOr("use_parallel_residual", true);
  config->qkv_bias = config->output_bias = reader.FlagOr("attention_bias", true);
  config->mlp_bias = true;
}

TensorNames GptNeoXNames() {
  TensorNames names;
  names.embedding = "gpt_neox.embed_in";
  names.norm = "gpt_neox.final_layer_norm";
  names.head = "embed_out";
  names.other_head = "lm_head";
  names.layers = "gpt_neox.layers";
  names.packed = "attention.query_key_value";
  names.output = "attention.dense";
  names.gate = nullptr;
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.passed_over = {".rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias"};
  return names;
}

}  // namespace

const Family kGptNeoX = {"GPTNeoXForCausalLM", "gpt_neox", GptNeoXNames(), ReadGptNeoX};

}  // namespace evald::native

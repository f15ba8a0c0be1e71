// OLMo2: the outputs of attention and feed-forward are normalized, not their inputs. Queries and
// keys are normalized over all heads together (transformers, models/olmo2).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void ReadOlmo2(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 50304, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32};
  ReadCommon(reader, {.sizes = kSizes, .norm_eps = 1e-5}, config);
  config->head_norm = HeadNorm::kWhole;
  config->qkv_bias = config->output_bias = reader.FlagOr("attention_bias", false);
}

TensorNames Olmo2Names() {
  TensorNames names;
  names.attention_norm = nullptr;
  names.attention_after_norm = "post_attention_layernorm";
  names.mlp_norm = nullptr;
  names.mlp_after_norm = "post_feedforward_layernorm";
  return names;
}

}  // namespace

const Family kOlmo2 = {"Olmo2ForCausalLM", "olmo2", Olmo2Names(), ReadOlmo2};

}  // namespace evald::native

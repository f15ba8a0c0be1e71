// Qwen3: each query and key head is normalized (transformers, models/qwen3).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void ReadQwen3(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 151936, .hidden = 4096, .intermediate = 22016, .layers = 32, .heads = 32};
  ReadCommon(reader, {.sizes = kSizes, .max_positions = 32768, .kv_heads = 32, .head_dim = 128},
             config);
  config->head_norm = HeadNorm::kEach;
  config->qkv_bias = config->output_bias = reader.FlagOr("attention_bias", false);
}

}  // namespace

const Family kQwen3 = {"Qwen3ForCausalLM", "qwen3", {}, ReadQwen3, WindowRule::kQwen};

}  // namespace evald::native

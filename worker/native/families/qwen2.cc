// Qwen2 and 2.5: Llama with biases on queries, keys and values (transformers, models/qwen2).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void ReadQwen2(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 151936, .hidden = 4096, .intermediate = 22016, .layers = 32, .heads = 32};
  ReadCommon(reader, {.sizes = kSizes, .max_positions = 32768, .kv_heads = 32}, config);
  config->qkv_bias = true;
}

}  // namespace

const Family kQwen2 = {"Qwen2ForCausalLM", "qwen2", {}, ReadQwen2, WindowRule::kQwen};

}  // namespace evald::native

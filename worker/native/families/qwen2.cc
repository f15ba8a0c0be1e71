// Qwen2 and 2.5: Llama with biases on queries, keys and values (transformers, models/qwen2).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void Read(const ConfigReader& reader, ModelConfig* config) {
  ReadCommon(reader, {.max_positions = 32768, .kv_heads = 32}, config);
  config->qkv_bias = true;
}

}  // namespace

const Family kQwen2 = {"Qwen2ForCausalLM", "qwen2", {}, Read, WindowRule::kQwen};

}  // namespace evald::native

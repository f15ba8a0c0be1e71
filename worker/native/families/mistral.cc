// Mistral: Llama with a sliding window in every layer (transformers, models/mistral). With layer_types
// in config.json, transformers loads a Ministral instead, whose layers are as the key says.
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void Read(const ConfigReader& reader, ModelConfig* config) {
  ReadCommon(reader, {.max_positions = 4096 * 32, .kv_heads = 8}, config);
}

}  // namespace

const Family kMistral = {"MistralForCausalLM", "mistral", {}, Read,
                         WindowRule::kMistral};

}  // namespace evald::native

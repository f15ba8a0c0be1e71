// Mistral: Llama with a sliding window in every layer (transformers, models/mistral). With
// layer_types in config.json, transformers loads a Ministral instead, whose layers are as the key
// says.
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void Read(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 32000, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32};
  ReadCommon(reader, {.sizes = kSizes, .max_positions = 4096 * 32, .kv_heads = 8}, config);
}

}  // namespace

const Family kMistral = {"MistralForCausalLM", "mistral", {}, Read, WindowRule::kMistral};

}  // namespace evald::native

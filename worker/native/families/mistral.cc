// Mistral: Llama with a sliding window in every layer (transformers, models/mistral). If
// config.json has layer_types, transformers loads a Ministral instead, with the layers that the key
// names.
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void ReadMistral(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 32000, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32};
  ReadCommon(reader, {.sizes = kSizes, .max_positions = 4096 * 32, .kv_heads = 8}, config);
}

}  // namespace

const Family kMistral = {"MistralForCausalLM", "mistral", {}, ReadMistral, WindowRule::kMistral};

}  // namespace evald::native

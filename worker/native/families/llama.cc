// Llama 1 to 3.x and models of the same architecture (transformers, models/llama).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void ReadLlama(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32};
  ReadCommon(reader, {.sizes = kSizes}, config);
  config->qkv_bias = config->output_bias = reader.FlagOr("attention_bias", false);
  config->mlp_bias = reader.FlagOr("mlp_bias", false);
}

}  // namespace

const Family kLlama = {"LlamaForCausalLM", "llama", {}, ReadLlama};

}  // namespace evald::native

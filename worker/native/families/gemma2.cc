// Gemma 2: windows in every other layer, attention scores and logits within caps (transformers,
// models/gemma2).
#include "worker/native/families/gemma.h"

namespace evald::native {
namespace {

void ReadGemma2(const ConfigReader& reader, ModelConfig* config) {
  CommonDefaults defaults = GemmaDefaults();
  defaults.sizes.vocab = 256000;
  defaults.max_positions = 8192;
  ReadGemma(reader, defaults, config);
  config->attention_cap = ReadCap(reader, "attn_logit_softcapping", 50);
  config->logits_cap = ReadCap(reader, "final_logit_softcapping", 30);
}

}  // namespace

const Family kGemma2 = {"Gemma2ForCausalLM", "gemma2", GemmaNames(), ReadGemma2,
                        WindowRule::kGemma2};

}  // namespace evald::native

// Gemma 3, text alone: each query and key head is normalized, and layers with a window have a rope
// of their own (transformers, models/gemma3).
#include "worker/native/families/gemma.h"

namespace evald::native {
namespace {

// The rotary embeddings of layers with a window (kLocal) and of the others (kGlobal).
constexpr LayerRope kLocal = {.type = "sliding_attention",
                              .defaults = {.theta_key = "rope_local_base_freq"}};
constexpr LayerRope kGlobal = {
    .type = "full_attention", .defaults = {.theta = 1e6}, .scaled = true};

// Gemma3Attention passes attn_logit_softcapping on to nobody, so the key has no effect.
void ReadGemma3(const ConfigReader& reader, ModelConfig* config) {
  CommonDefaults defaults = GemmaDefaults();
  defaults.sizes.vocab = 262208;
  defaults.max_positions = 131072;
  defaults.global_rope = &kGlobal;
  ReadGemma(reader, defaults, config);
  config->local_rope = ReadLayerRope(reader, kLocal, *config);
  config->logits_cap = ReadCap(reader, "final_logit_softcapping", 0);
  config->head_norm = HeadNorm::kEach;
}

}  // namespace

const Family kGemma3 = {"Gemma3ForCausalLM", "gemma3_text", GemmaNames(), ReadGemma3,
                        WindowRule::kGemma3};

}  // namespace evald::native

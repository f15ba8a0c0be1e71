// Qwen3-MoE: Qwen3 with a mixture of experts in most layers (transformers, models/qwen3_moe).
#include <fmt/format.h>

#include "worker/native/families/family.h"

namespace evald::native {
namespace {

constexpr int64_t kExpertsMax = 4096;

// Finds the layers with experts: every decoder_sparse_step-th, without those that mlp_only_layers
// names. The others have a plain feed-forward part.
void ReadSparseLayers(const ConfigReader& reader, ModelConfig* config) {
  const int64_t step = reader.SizeOr("decoder_sparse_step", 4096, 1);
  for (int64_t i = 0; i < config->layers; ++i) {
    config->sparse[static_cast<size_t>(i)] = (i + 1) % step == 0;
  }
  if (!reader.Has("mlp_only_layers")) return;
  const Json& dense = reader.json()["mlp_only_layers"];
  for (const Json& index : dense.is_array() ? dense : Json::array({-1})) {
    if (!index.is_number_unsigned() || index.get<uint64_t>() >= config->sparse.size()) {
      reader.Refuse("mlp_only_layers",
                    fmt::format("a list of layers from 0 to {}", config->layers - 1));
    }
    config->sparse[index.get<size_t>()] = false;
  }
}

void ReadQwen3Moe(const ConfigReader& reader, ModelConfig* config) {
  constexpr DefaultSizes kSizes = {
      .vocab = 151936, .hidden = 2048, .intermediate = 6144, .layers = 24, .heads = 32};
  ReadCommon(reader, {.sizes = kSizes, .max_positions = 32768, .kv_heads = 4}, config);
  config->head_norm = HeadNorm::kEach;
  config->qkv_bias = config->output_bias = reader.FlagOr("attention_bias", false);
  const char* count_key = reader.Has("num_local_experts") ? "num_local_experts" : "num_experts";
  config->experts.count = reader.SizeOr(count_key, kExpertsMax, 128);
  config->experts.per_token = reader.SizeOr("num_experts_per_tok", kExpertsMax, 8);
  if (config->experts.per_token > config->experts.count) {
    reader.Refuse("num_experts_per_tok",
                  fmt::format("at most {} ({})", count_key, config->experts.count));
  }
  config->experts.intermediate_size = reader.SizeOr("moe_intermediate_size", int64_t{1} << 20, 768);
  config->experts.normalize = reader.FlagOr("norm_topk_prob", false);
  ReadSparseLayers(reader, config);
}

}  // namespace

const Family kQwen3Moe = {
    "Qwen3MoeForCausalLM", "qwen3_moe", {}, ReadQwen3Moe, WindowRule::kQwenMoe};

}  // namespace evald::native

// Like sensitivity_test.cc, for the differences between families. Each feature is switched off or
// changed in a copy of its checkpoint. The golden check must then fail by far.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "native_test_util.h"

namespace evald::native {
namespace {

// The error if `key` of config.json is set to `value` (null removes the key).
double ErrorWith(const std::string& golden, const std::string& key, const Json& value) {
  CheckpointCopy copy(golden);
  copy.SetConfig(key, value);
  return ErrorOf(golden, copy);
}

double ErrorWithout(const std::string& golden, const std::string& tensors) {
  CheckpointCopy copy(golden);
  copy.Clear(tensors);
  return ErrorOf(golden, copy);
}

void FillWithOnes(Tensors::Tensor* tensor) {  // of bf16
  for (size_t i = 0; i < tensor->data.size(); i += 2) tensor->data.replace(i, 2, "\x80\x3f");
}

Json RopeOf(const std::string& golden, const std::string& key) {
  const Json config = ParseJson(ReadFile(GoldenPath(golden) / "config.json"), "config.json");
  return config[key];
}

TEST(FamilySensitivityTest, Yarn) {
  const Json rope = RopeOf("yarn", "rope_scaling");
  EXPECT_GT(ErrorWith("yarn", "rope_scaling", nullptr), kFar);
  for (const char* key : {"factor", "beta_fast", "beta_slow", "original_max_position_embeddings"}) {
    Json changed = rope;
    changed[key] = rope[key].get<double>() * 1.5;
    EXPECT_GT(ErrorWith("yarn", "rope_scaling", changed), kFar) << key;
  }
  Json attention = rope;
  attention["attention_factor"] = 1.0;
  EXPECT_GT(ErrorWith("yarn", "rope_scaling", attention), kFar);
  Json truncated = rope;
  truncated.erase("truncate");
  EXPECT_GT(ErrorWith("yarn", "rope_scaling", truncated), kFar);
}

TEST(FamilySensitivityTest, YarnAttentionFactorOfTheConfig) {
  Json rope = RopeOf("qwen3", "rope_parameters");
  rope.erase("attention_factor");
  EXPECT_GT(ErrorWith("qwen3", "rope_parameters", rope), kFar);
}

TEST(FamilySensitivityTest, MistralWindow) {
  EXPECT_GT(ErrorWith("mistral", "sliding_window", nullptr), kFar);
  EXPECT_GT(ErrorWith("mistral", "sliding_window", 47), kFar);
  EXPECT_GT(ErrorWith("ministral", "sliding_window", 49), kFar);
  EXPECT_GT(ErrorWith("mistral", "sliding_window", 49), kFar);
}

TEST(FamilySensitivityTest, Qwen2WindowsAndBiases) {
  EXPECT_GT(ErrorWith("qwen2", "use_sliding_window", false), kFar);
  EXPECT_GT(ErrorWith("qwen2", "max_window_layers", 0), kFar);
  EXPECT_GT(ErrorWith("qwen2", "max_window_layers", 2), kFar);
  for (const char* bias : {"q_proj.bias", "k_proj.bias", "v_proj.bias"}) {
    EXPECT_GT(ErrorWithout("qwen2", bias), kFar) << bias;
  }
}

TEST(FamilySensitivityTest, Qwen3NormsAndLayerTypes) {
  for (const char* norm : {"q_norm", "k_norm"}) {
    CheckpointCopy copy("qwen3");
    copy.ChangeTensors(norm, FillWithOnes);
    EXPECT_GT(ErrorOf("qwen3", copy), kFar) << norm << " all ones";
  }
  EXPECT_GT(ErrorWith("qwen3", "layer_types", nullptr), kFar);
  EXPECT_GT(ErrorWith("qwen3", "sliding_window", 57), kFar);
}

TEST(FamilySensitivityTest, Qwen3MoeRouting) {
  EXPECT_GT(ErrorWith("qwen3_moe", "norm_topk_prob", false), kFar);
  EXPECT_GT(ErrorWith("qwen3_moe", "num_experts_per_tok", 2), kFar);
  EXPECT_GT(ErrorWith("qwen3_moe", "num_experts_per_tok", 4), kFar);
  EXPECT_GT(ErrorWithout("qwen3_moe", "mlp.gate.weight"), kFar);
  EXPECT_GT(ErrorWithout("qwen3_moe", "layers.2.mlp.experts.6.down_proj"), kFar);
  EXPECT_GT(ErrorWithout("qwen3_moe", "layers.1.mlp.down_proj"), kFar);
}

TEST(FamilySensitivityTest, InternLm2Biases) {
  EXPECT_GT(ErrorWithout("internlm2", "wqkv.bias"), kFar);
  EXPECT_GT(ErrorWithout("internlm2", "wo.bias"), kFar);
}

// Rows packed as [queries of all heads, keys, values] would be read without any error.
TEST(FamilySensitivityTest, InternLm2Packing) {
  CheckpointCopy copy("internlm2");
  copy.ChangeTensors("wqkv.weight", [](Tensors::Tensor* tensor) {
    const size_t head = 16 * 64 * 2;  // bytes: 16 rows of 64 halves
    std::string& data = tensor->data;
    ASSERT_EQ(data.size(), 8 * head);
    const std::string from = data;
    const size_t order[] = {0, 1, 4, 5, 2, 6, 3, 7};
    for (size_t i = 0; i < 8; ++i) data.replace(i * head, head, from, order[i] * head, head);
  });
  EXPECT_GT(ErrorOf("internlm2", copy), kFar);
}

TEST(FamilySensitivityTest, GptNeoX) {
  EXPECT_GT(ErrorWith("gpt_neox", "use_parallel_residual", false), kFar);
  EXPECT_GT(ErrorWith("gpt_neox_serial", "use_parallel_residual", true), kFar);
  EXPECT_GT(ErrorWith("gpt_neox", "rotary_pct", 0.5), kFar);
  EXPECT_GT(ErrorWith("gpt_neox", "rotary_pct", 1.0), kFar);
  EXPECT_GT(ErrorWith("gpt_neox", "rotary_emb_base", 150), kFar);
  EXPECT_GT(ErrorWith("gpt_neox", "layer_norm_eps", 0.1), kFar);
  EXPECT_GT(ErrorWith("gpt_neox", "hidden_act", "silu"), kFar);
  // The two gelus differ by less than 5e-4 everywhere.
  EXPECT_GT(ErrorWith("gpt_neox", "hidden_act", "gelu_new"), 5e-4);
  EXPECT_GT(ErrorWith("gpt_neox_serial", "hidden_act", "gelu"), 5e-4);
  for (const char* bias :
       {"query_key_value.bias", "dense.bias", "dense_h_to_4h.bias", "dense_4h_to_h.bias",
        "input_layernorm.bias", "post_attention_layernorm.bias", "final_layer_norm.bias"}) {
    EXPECT_GT(ErrorWithout("gpt_neox", bias), kFar) << bias;
  }
}

TEST(FamilySensitivityTest, GptNeoXPartialFactorOfTheRope) {
  Json rope = RopeOf("gpt_neox_serial", "rope_parameters");
  rope["partial_rotary_factor"] = 0.7;
  EXPECT_GT(ErrorWith("gpt_neox_serial", "rope_parameters", rope), kFar);
}

TEST(FamilySensitivityTest, Olmo2Norms) {
  EXPECT_GT(ErrorWith("olmo2", "rms_norm_eps", 0.05), kFar);
  for (const char* norm :
       {"q_norm", "k_norm", "post_attention_layernorm", "post_feedforward_layernorm"}) {
    CheckpointCopy copy("olmo2");
    copy.ChangeTensors(norm, FillWithOnes);
    EXPECT_GT(ErrorOf("olmo2", copy), kFar) << norm << " all ones";
  }
}

TEST(FamilySensitivityTest, Gemma2Caps) {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    EXPECT_GT(ErrorWith("gemma2", key, nullptr), kFar) << key << ": the default";
    const double cap = RopeOf("gemma2", key).get<double>();
    EXPECT_GT(ErrorWith("gemma2", key, cap * 1.1), kFar) << key;
  }
}

TEST(FamilySensitivityTest, GemmaQueryScale) {
  for (const char* golden : {"gemma2", "gemma3", "gemma3_nested"}) {
    EXPECT_GT(ErrorWith(golden, "query_pre_attn_scalar", 30), kFar) << golden;
  }
}

TEST(FamilySensitivityTest, GemmaWindows) {
  EXPECT_GT(ErrorWith("gemma2", "sliding_window", 49), kFar);
  EXPECT_GT(ErrorWith("gemma2", "layer_types",
                      {"full_attention", "sliding_attention", "sliding_attention"}),
            kFar);
  EXPECT_GT(ErrorWith("gemma3", "sliding_window", 39), kFar);
  EXPECT_GT(ErrorWith("gemma3", "sliding_window_pattern", 2), kFar);
  EXPECT_GT(ErrorWith("gemma3_nested", "sliding_window", 57), kFar);
}

TEST(FamilySensitivityTest, Gemma3Ropes) {
  EXPECT_GT(ErrorWith("gemma3", "rope_theta", nullptr), kFar);
  EXPECT_GT(ErrorWith("gemma3", "rope_local_base_freq", nullptr), kFar);
  EXPECT_GT(ErrorWith("gemma3", "rope_scaling", nullptr), kFar);
  for (const char* layers : {"full_attention", "sliding_attention"}) {
    Json ropes = RopeOf("gemma3_nested", "rope_parameters");
    ropes[layers]["rope_theta"] = 300;
    EXPECT_GT(ErrorWith("gemma3_nested", "rope_parameters", ropes), kFar) << layers;
  }
  Json ropes = RopeOf("gemma3_nested", "rope_parameters");
  ropes["sliding_attention"]["factor"] = 3;
  EXPECT_GT(ErrorWith("gemma3_nested", "rope_parameters", ropes), kFar);
}

TEST(FamilySensitivityTest, GemmaNorms) {
  EXPECT_GT(ErrorWith("gemma2", "rms_norm_eps", 0.05), kFar);
  for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                           "pre_feedforward_layernorm", "post_feedforward_layernorm", "model.norm"})
    EXPECT_GT(ErrorWithout("gemma2", norm), kFar) << norm;
  for (const char* norm : {"q_norm", "k_norm"})
    EXPECT_GT(ErrorWithout("gemma3", norm), kFar) << norm;
}

TEST(FamilySensitivityTest, GemmaActivation) {
  // The two gelus differ by less than 5e-4 anywhere.
  EXPECT_GT(ErrorWith("gemma2", "hidden_activation", "gelu"), 1e-4);
  EXPECT_GT(ErrorWith("gemma3_nested", "hidden_activation", "gelu_pytorch_tanh"), 1e-4);
  EXPECT_GT(ErrorWith("gemma2", "hidden_activation", "silu"), kFar);
}

// A norm of each head by itself, as in Qwen3, has weights of another shape. The sum of squares over
// all heads changes the numbers if one head is scaled.
TEST(FamilySensitivityTest, Olmo2NormsAllHeadsTogether) {
  CheckpointCopy copy("olmo2");
  copy.ChangeTensors("q_proj.weight", [](Tensors::Tensor* tensor) {
    const size_t head = 16 * 64 * 2;
    std::fill_n(tensor->data.begin(), head, '\0');
  });
  EXPECT_GT(ErrorOf("olmo2", copy), kFar);
}

}  // namespace
}  // namespace evald::native

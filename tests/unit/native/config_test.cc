#include "worker/native/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald::native {
namespace {

Json Good() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", 1000},
          {"hidden_size", 64},
          {"intermediate_size", 128},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4}};
}

std::string Refusal(const std::string& key, const Json& value) {
  Json json = Good();
  json[key] = value;
  return RefusalOf([&] { ParseModelConfig(json, "config.json"); });
}

void ExpectRefusal(const std::string& key, const Json& value,
                   const std::vector<std::string>& words) {
  const std::string message = Refusal(key, value);
  EXPECT_NE(message, "") << key;
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
  }
}

TEST(ConfigTest, DefaultsOfTransformers) {
  const ModelConfig config = ParseModelConfig(Good(), "config.json");
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.max_positions, 2048);
  EXPECT_EQ(config.norm_eps, 1e-6);
  EXPECT_EQ(config.rope.theta, 10000);
  EXPECT_FALSE(config.tied_embeddings);
}

TEST(ConfigTest, BothSpellingsOfRope) {
  const Json llama3 = {{"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 512}};
  for (const char* type_key : {"type", "rope_type"}) {
    Json old = Good();
    old["rope_theta"] = 500000.0;
    old["rope_scaling"] = llama3;
    old["rope_scaling"][type_key] = "llama3";
    const RopeConfig rope = ParseModelConfig(old, "config.json").rope;
    EXPECT_EQ(rope.type, RopeType::kLlama3);
    EXPECT_EQ(rope.theta, 500000);
    EXPECT_EQ(rope.original_positions, 512);
  }
  Json fresh = Good();
  fresh["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5000.0}};
  EXPECT_EQ(ParseModelConfig(fresh, "config.json").rope.theta, 5000);
}

ModelConfig Parsed(const std::string& architecture, const std::string& type, const Json& keys) {
  Json json = Good();
  json["architectures"] = {architecture};
  json["model_type"] = type;
  json.update(keys);
  return ParseModelConfig(json, "config.json");
}

TEST(ConfigTest, DefaultsOfTheFamilies) {
  const ModelConfig mistral = Parsed("MistralForCausalLM", "mistral", {{"num_attention_heads", 8}});
  EXPECT_EQ(mistral.windows, (std::vector<int64_t>{4096, 4096})) << "where the key is absent";
  EXPECT_EQ(mistral.kv_heads, 8);
  EXPECT_EQ(mistral.max_positions, 131072);
  EXPECT_EQ(Parsed("MistralForCausalLM", "mistral",
                   {{"num_attention_heads", 8}, {"sliding_window", nullptr}})
                .windows,
            (std::vector<int64_t>{0, 0}));
  const Json kv = {{"num_key_value_heads", 2}};
  const ModelConfig qwen2 = Parsed("Qwen2ForCausalLM", "qwen2", kv);
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
  EXPECT_EQ(qwen2.windows, (std::vector<int64_t>{0, 0})) << "use_sliding_window is false";
  EXPECT_EQ(Parsed("Qwen3ForCausalLM", "qwen3", kv).head_dim, 128);
  EXPECT_EQ(Parsed("Qwen3MoeForCausalLM", "qwen3_moe", kv).head_dim, 16);
  EXPECT_EQ(Parsed("Qwen3MoeForCausalLM", "qwen3_moe", kv).experts.count, 128);
  EXPECT_TRUE(Parsed("InternLM2ForCausalLM", "internlm2", Json::object()).qkv_bias);
  EXPECT_FALSE(Parsed("InternLM2ForCausalLM", "internlm2", {{"bias", false}}).output_bias);
  EXPECT_EQ(Parsed("Olmo2ForCausalLM", "olmo2", Json::object()).norm_eps, 1e-5);
  const ModelConfig neox = Parsed("GPTNeoXForCausalLM", "gpt_neox", Json::object());
  EXPECT_EQ(neox.rotary_dim, 4);
  EXPECT_EQ(neox.activation, Activation::kGelu);
  EXPECT_TRUE(neox.parallel);
  EXPECT_EQ(neox.norm_eps, 1e-5);
}

TEST(ConfigTest, DefaultsOfGemma) {
  const Json seven = {{"num_hidden_layers", 7}};
  const ModelConfig two = Parsed("Gemma2ForCausalLM", "gemma2", seven);
  EXPECT_EQ(two.windows, (std::vector<int64_t>{4096, 0, 4096, 0, 4096, 0, 4096}));
  EXPECT_EQ(two.head_dim, 256);
  EXPECT_EQ(two.query_scale(), 1.0f / 16);
  EXPECT_EQ(two.attention_cap, 50);
  EXPECT_EQ(two.logits_cap, 30);
  EXPECT_EQ(two.embedding_scale, 8);
  EXPECT_EQ(two.activation, Activation::kGeluTanh);
  EXPECT_TRUE(two.tied_embeddings);
  EXPECT_FALSE(two.local_rope);
  EXPECT_EQ(two.head_norm, HeadNorm::kNone);
  const ModelConfig three = Parsed("Gemma3ForCausalLM", "gemma3_text", seven);
  EXPECT_EQ(three.windows, (std::vector<int64_t>{4096, 4096, 4096, 4096, 4096, 0, 4096}));
  EXPECT_EQ(three.rope.theta, 1e6);
  ASSERT_TRUE(three.local_rope);
  EXPECT_EQ(three.local_rope->theta, 1e4);
  EXPECT_TRUE(three.IsLocal(4));
  EXPECT_FALSE(three.IsLocal(5));
  EXPECT_EQ(three.attention_cap, 0);
  // As in transformers, parameters that are no layer type's have no effect.
  const Json flat = {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 500}}}};
  EXPECT_EQ(Parsed("Gemma3ForCausalLM", "gemma3_text", flat).rope.theta, 1e6);
  EXPECT_EQ(three.logits_cap, 0);
  EXPECT_EQ(three.head_norm, HeadNorm::kEach);
}

TEST(ConfigTest, RefusesWhatGemmaCannotHave) {
  const auto refusal = [](const Json& keys) {
    try {
      Parsed("Gemma3ForCausalLM", "gemma3_text", keys);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal({{"use_bidirectional_attention", true}}),
              HasSubstr("use_bidirectional_attention: found true, expected false"));
  EXPECT_THAT(refusal({{"sliding_window", nullptr}}), HasSubstr("sliding_window: found null"));
  EXPECT_THAT(refusal({{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}}}),
              HasSubstr("rope_type: found \"dynamic\", expected default, linear"));
  EXPECT_THAT(refusal({{"final_logit_softcapping", -3}}),
              HasSubstr("final_logit_softcapping: found -3"));
}

TEST(ConfigTest, RefusesWhatAFamilyCannotHave) {
  const auto refusal = [](const std::string& architecture, const std::string& type, Json keys) {
    keys["num_key_value_heads"] = 2;
    return CaughtText([&] { Parsed(architecture, type, keys); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal("MistralForCausalLM", "mistral", {{"sliding_window", -1}}),
              HasSubstr("sliding_window: found -1"));
  EXPECT_THAT(refusal("Qwen2ForCausalLM", "qwen2",
                      {{"use_sliding_window", true}, {"layer_types", {"full_attention"}}}),
              HasSubstr("layer_types"));
  EXPECT_THAT(refusal("Qwen2ForCausalLM", "qwen2",
                      {{"layer_types", {"full_attention", "sliding_attention"}}}),
              HasSubstr("there is no sliding window"));
  EXPECT_THAT(
      refusal("Qwen3MoeForCausalLM", "qwen3_moe", {{"num_experts", 4}, {"num_experts_per_tok", 5}}),
      HasSubstr("num_experts_per_tok: found 5, expected at most num_experts (4)"));
  EXPECT_THAT(refusal("Qwen3MoeForCausalLM", "qwen3_moe", {{"mlp_only_layers", {2}}}),
              HasSubstr("mlp_only_layers"));
  EXPECT_THAT(refusal("GPTNeoXForCausalLM", "gpt_neox", {{"rotary_pct", 0.01}}),
              HasSubstr("rotary_pct"));
  // transformers accepts an odd share of a head, except with yarn.
  EXPECT_THAT(
      refusal("GPTNeoXForCausalLM", "gpt_neox",
              {{"rotary_pct", 0.2}, {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}}}),
      HasSubstr("rope_type"));
  EXPECT_THAT(refusal("LlamaForCausalLM", "llama", {{"model_type", "qwen2"}}),
              HasSubstr("model_type"));
}

TEST(ConfigTest, RefusesByName) {
  ExpectRefusal(
      "architectures", {"MixtralForCausalLM"},
      {"MixtralForCausalLM", "LlamaForCausalLM", "Qwen3MoeForCausalLM", "Olmo2ForCausalLM"});
  ExpectRefusal("architectures", Json::array(), {"architectures"});
  ExpectRefusal("model_type", "qwen2", {"qwen2"});
  ExpectRefusal("hidden_act", "relu", {"hidden_act", "relu", "silu"});
  ExpectRefusal("quantization_config", {{"bits", 4}}, {"quantization_config"});
  for (const char* type : {"longrope", "proportional", "made-up"}) {
    ExpectRefusal("rope_scaling", {{"rope_type", type}, {"factor", 2.0}},
                  {type, "default, linear, llama3, yarn or dynamic", "rope_scaling"});
  }
  ExpectRefusal("rope_scaling", {{"rope_type", "dynamic"}}, {"factor"});
  ExpectRefusal("rope_scaling", {{"rope_type", "yarn"}, {"factor", 0.0}}, {"factor", "0.0"});
  ExpectRefusal("rope_scaling", {{"rope_type", "linear"}}, {"factor"});
  ExpectRefusal("rope_scaling", {{"rope_type", "linear"}, {"factor", -1.0}}, {"factor", "-1.0"});
  ExpectRefusal("rope_scaling", {{"rope_type", "llama3"}, {"factor", 2.0}}, {"low_freq_factor"});
  ExpectRefusal("rope_scaling", "linear", {"rope_scaling"});
  ExpectRefusal("rope_parameters", {{"full_attention", {{"rope_type", "default"}}}},
                {"full_attention"});
  ExpectRefusal("rope_scaling",
                {{"rope_type", "linear"}, {"factor", 2.0}, {"partial_rotary_factor", 0.5}},
                {"partial_rotary_factor"});
}

TEST(ConfigTest, RefusesSizes) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"}) {
    for (const Json& bad : {Json(0), Json(-4), Json(int64_t{1} << 60), Json(UINT64_MAX), Json(1.5),
                            Json("64"), Json(true)}) {
      ExpectRefusal(key, bad, {"config.json", key});
    }
  }
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers"}) {
    ExpectRefusal(key, nullptr, {key});
  }
  ExpectRefusal("num_key_value_heads", 3, {"num_key_value_heads", "3", "divisor"});
  ExpectRefusal("num_attention_heads", 5, {"hidden_size", "multiple"});
  ExpectRefusal("head_dim", 15, {"head_dim", "even"});
  ExpectRefusal("rms_norm_eps", -1, {"rms_norm_eps"});
  ExpectRefusal("tie_word_embeddings", "yes", {"tie_word_embeddings"});
  EXPECT_THROW(ParseModelConfig(Json::array(), "config.json"), Error);
}

}  // namespace
}  // namespace evald::native

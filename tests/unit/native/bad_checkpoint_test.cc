// Checkpoints that must be refused by the name of the file, the key or the tensor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "evald/error.h"
#include "native_test_util.h"
#include "tests/unit/support/caught.h"

namespace evald::native {
namespace {

class BadCheckpointTest : public testing::Test {
 protected:
  void ExpectError(const std::vector<std::string>& words) {
    const std::string message = LoadError(copy_.path());
    EXPECT_NE(message, "");
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
    }
  }
  std::filesystem::path File() const { return copy_.path() / "model.safetensors"; }

  CheckpointCopy copy_{"linear"};
};

TEST_F(BadCheckpointTest, TheGoodOneLoads) { EXPECT_EQ(LoadError(copy_.path()), ""); }

TEST_F(BadCheckpointTest, TruncatedShard) {
  const std::string bytes = ReadFile(File());
  copy_.Write("model.safetensors", bytes.substr(0, bytes.size() - 100));
  ExpectError({"model.safetensors"});
  copy_.Write("model.safetensors", bytes.substr(0, 20));
  ExpectError({"model.safetensors"});
}

TEST_F(BadCheckpointTest, MissingShard) {
  CheckpointCopy sharded("untied");
  std::filesystem::remove(sharded.path() / "model-00002-of-00002.safetensors");
  EXPECT_NE(LoadError(sharded.path()).find("model-00002-of-00002.safetensors"), std::string::npos);
}

TEST_F(BadCheckpointTest, WrongShape) {
  Tensors all = Tensors::Read(File());
  all.tensors["model.layers.1.mlp.up_proj.weight"].shape = {40, 73};
  all.Write(File());
  ExpectError({"model.safetensors", "model.layers.1.mlp.up_proj.weight", "[40, 73]", "[73, 40]"});
}

TEST_F(BadCheckpointTest, ConfigDisagrees) {
  copy_.SetConfig("intermediate_size", 80);
  ExpectError({"gate_proj", "[73, 40]", "[80, 40]"});
  copy_.SetConfig("intermediate_size", 73);
  copy_.SetConfig("num_hidden_layers", 3);
  ExpectError({"model.layers.2", "missing"});
  copy_.SetConfig("num_hidden_layers", 2);
  copy_.SetConfig("attention_bias", false);
  ExpectError({".bias", "no place", "attention_bias"});
}

TEST_F(BadCheckpointTest, MissingAndUnknownTensors) {
  Tensors all = Tensors::Read(File());
  const auto norm = all.tensors["model.norm.weight"];
  all.tensors["model.layers.0.self_attn.q_norm.weight"] = norm;
  all.Write(File());
  ExpectError({"q_norm", "no place"});
  all.tensors.erase("model.layers.0.self_attn.q_norm.weight");
  all.tensors.erase("lm_head.weight");
  all.Write(File());
  ExpectError({"'lm_head.weight'", "missing", "[320, 40]"});
}

TEST_F(BadCheckpointTest, OldRotaryTensorIsPassedOver) {
  Tensors all = Tensors::Read(File());
  all.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {"F32", {1}, std::string(4, '\0')};
  all.Write(File());
  EXPECT_EQ(LoadError(copy_.path()), "");
}

// transformers ignores tensors that have no place in the model, and warns.
TEST_F(BadCheckpointTest, HeadsAndLayersWithoutUseArePassedOver) {
  Tensors all = Tensors::Read(File());
  const auto norm = all.tensors["model.norm.weight"];
  for (const char* name :
       {"v_head.summary.weight", "v_head.summary.bias", "score.weight",
        "model.layers.2.mlp.up_proj.weight", "model.layers.10.input_layernorm.weight"}) {
    all.tensors[name] = norm;
  }
  all.Write(File());
  testing::internal::CaptureStdout();  // captures the log
  EXPECT_EQ(LoadError(copy_.path()), "");
  EXPECT_NE(testing::internal::GetCapturedStdout().find("5 tensors have no place"),
            std::string::npos);
  const Tensors good = Tensors::Read(File());
  for (const char* name :
       {"model.layers.1.mlp.up_proj.scale", "score.lora_A.weight", "model.score.weight",
        "model.layers.x.norm.weight", "lm_head.bias",
        "model.layers.0.self_attn.q_proj.weight_scale", "base_model.model.lm_head.weight"}) {
    Tensors bad = good;
    bad.tensors[name] = norm;
    bad.Write(File());
    ExpectError({name, "no place"});
  }
}

TEST_F(BadCheckpointTest, FewerLayersThanTheFiles) {
  copy_.SetConfig("num_hidden_layers", 1);
  EXPECT_EQ(LoadError(copy_.path()), "");
}

// transformers reads and writes both names.
TEST_F(BadCheckpointTest, GptNeoxHeadOfEitherName) {
  CheckpointCopy neox("gpt_neox");
  const auto file = neox.path() / "model.safetensors";
  const auto score = [&] {
    const auto engine = LoadedEngine(neox.path());
    return AnswerAll(engine.get(), {ScoreRequest("hello", " world")})[0].loglikelihood;
  };
  const double before = score();
  Tensors all = Tensors::Read(file);
  all.tensors["lm_head.weight"] = all.tensors.at("embed_out.weight");
  all.tensors.erase("embed_out.weight");
  all.Write(file);
  EXPECT_EQ(score(), before);
}

TEST_F(BadCheckpointTest, Dtypes) {
  Tensors all = Tensors::Read(File());
  auto& tensor = all.tensors["model.layers.0.self_attn.k_proj.weight"];
  tensor.dtype = "I32";
  all.Write(File());
  ExpectError({"k_proj", "I32", "BF16"});
  tensor.dtype = "F4_E2M1";
  all.Write(File());
  ExpectError({"F4_E2M1"});
}

TEST_F(BadCheckpointTest, TiedButDifferent) {
  copy_.SetConfig("tie_word_embeddings", true);
  ExpectError({"tie_word_embeddings", "lm_head.weight"});
}

TEST_F(BadCheckpointTest, Files) {
  copy_.Write("config.json", "{");
  ExpectError({"config.json"});
  std::filesystem::remove(copy_.path() / "config.json");
  ExpectError({"config.json"});
}

TEST_F(BadCheckpointTest, MissingTokenizer) {
  std::filesystem::remove(copy_.path() / "tokenizer.json");
  ExpectError({"tokenizer.json"});
}

TEST_F(BadCheckpointTest, SettingsAreStrict) {
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"kv_cash", "1GiB"}}), Error);
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"max_length", 257}}), Error);
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"max_length", 0}}), Error);
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"kv_cache", "10"}}), Error);
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"kv_cache", "900TiB"}}), Error);
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"kv_cache", "much"}}), Error);
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"kernels", "sse9"}}), Error);
  EXPECT_THROW(LoadedEngine(copy_.path(), {{"concurrency", 0}}), Error);
}

// As in torch and lm_eval: a log-likelihood is NaN, a greedy answer is the first NaN's token, and
// no token can be drawn.
TEST_F(BadCheckpointTest, WeightsThatAreNotFinite) {
  const Tensors good = Tensors::Read(File());
  for (const char* name :
       {"model.norm.weight", "lm_head.weight", "model.layers.0.self_attn.k_proj.weight",
        "model.layers.1.mlp.down_proj.weight"}) {
    const float bad = NAN;
    Tensors all = good;
    std::memcpy(all.tensors[name].data.data() + 8, &bad, sizeof bad);
    all.Write(File());
    const auto engine = LoadedEngine(copy_.path());
    const Generation scored = AnswerAll(engine.get(), {ScoreRequest("hello", " world")})[0];
    EXPECT_TRUE(std::isnan(scored.loglikelihood)) << name;
    EXPECT_FALSE(scored.is_greedy) << name;
    const Generation text = AnswerAll(engine.get(), {GenerateRequest("hello", {}, 4)})[0];
    EXPECT_EQ(text.undefined, text.tokens_out) << name;
    EXPECT_GT(text.undefined, 0) << name;
    Request drawn = GenerateRequest("hello", {}, 4);
    drawn.doc_id = 17;
    drawn.sampling.do_sample = true;
    const Error e = Caught([&] { AnswerAll(engine.get(), {drawn}); });
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("document 17"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("not finite"), std::string::npos) << e.what();
    EXPECT_EQ(engine->pending(), 0u);
  }
}

TEST_F(BadCheckpointTest, LoadingAnotherAfterAFailure) {
  const auto engine = LoadedEngine(GoldenPath("untied"));
  copy_.SetConfig("num_hidden_layers", 9);
  EXPECT_THROW(engine->Load(copy_.path()), Error);
  EXPECT_EQ(engine->Info().max_length, 0);
  engine->Load(GoldenPath("llama3"));
  EXPECT_EQ(engine->Info().max_length, 256);
  EXPECT_NE(AnswerAll(engine.get(), {ScoreRequest("a", " b")})[0].loglikelihood, 0);
}

}  // namespace
}  // namespace evald::native

// Keys of config.json for windows, caches, context lengths and sizes
// (tests/oracle/window_golden.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "native_test_util.h"
#include "tests/unit/support/caught.h"
#include "worker/native/config.h"

namespace evald::native {
namespace {

using testing::HasSubstr;

// The oracle tried 30 tokens. A window that begins after them looks like one that never begins, so
// it is 0 too.
int64_t Tried(int64_t positions) { return positions < 30 ? positions : 0; }

Json SizesOf(const ModelConfig& config) {
  return {{"vocab_size", config.vocab_size},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.intermediate_size},
          {"num_hidden_layers", config.layers},
          {"num_attention_heads", config.heads},
          {"num_key_value_heads", config.kv_heads},
          {"head_dim", config.head_dim}};
}

TEST(WindowsTest, AreThoseOfTransformersInEveryFamily) {
  const auto path = GoldenPath("").parent_path().parent_path() / "native_config/windows.jsonl";
  size_t served = 0, refused = 0;
  ForEachJsonLine(path, [&](size_t number, const Json& line) {
    SCOPED_TRACE(testing::Message() << "line " << number << ": " << line["config"]);
    if (line.contains("error")) {
      EXPECT_THROW(ParseModelConfig(line["config"], "config.json"), Error);
      ++refused;
      return;
    }
    const ModelConfig config = ParseModelConfig(line["config"], "config.json");
    std::vector<int64_t> windows;
    for (const int64_t window : config.windows) windows.push_back(Tried(window));
    EXPECT_EQ(windows, line["windows"].get<std::vector<int64_t>>());
    EXPECT_EQ(Tried(config.generation_positions), line["generation_positions"].get<int64_t>());
    EXPECT_EQ(config.context, line["context"].get<int64_t>());
    EXPECT_EQ(SizesOf(config), line["sizes"]);
    ++served;
  });
  EXPECT_GE(served, 220u);
  EXPECT_GE(refused, 50u);
}

// A checkpoint with one key of config.json changed, and its engine.
struct Changed {
  Changed(const std::string& golden, const std::string& key, const Json& value) : copy(golden) {
    copy.SetConfig(key, value);
    copy.SetConfig("eos_token_id", nullptr);
    engine = LoadedEngine(copy.path());
  }
  static Request Generate(size_t prompt, int max_gen_toks) {
    Request request;
    request.doc_id = 5;
    for (size_t i = 0; i < prompt; ++i) {
      request.context_tokens.push_back(static_cast<int32_t>(2 + i * 31 % 300));
    }
    request.sampling.max_gen_toks = max_gen_toks;
    return request;
  }
  std::string Refusal(size_t prompt, int max_gen_toks) {
    return SubmitError(engine.get(), Generate(prompt, max_gen_toks));
  }

  CheckpointCopy copy;
  std::unique_ptr<Engine> engine;
};

TEST(WindowsTest, ATextBeyondTheCacheIsRefusedAndNoOther) {
  for (const char* key : {"sliding_window", "attention_chunk_size"}) {
    Changed changed("linear", key, 20);
    const std::string refusal = changed.Refusal(11, 11);
    EXPECT_THAT(refusal, HasSubstr("document 5"));
    EXPECT_THAT(refusal, HasSubstr("11 tokens of prompt and 11 to be generated are more than 20"));
    EXPECT_THAT(refusal, HasSubstr("sliding_window"));
    EXPECT_EQ(changed.Refusal(11, 10), "") << "the last token is not computed";
    EXPECT_EQ(changed.Refusal(200, 1), "") << "one token comes from the prompt's forward pass";
    EXPECT_THAT(changed.Refusal(200, 2), HasSubstr("more than 20"));
    EXPECT_EQ(SubmitError(changed.engine.get(), ScoreRequest(std::string(60, 'x'), "y")), "");
  }
}

TEST(WindowsTest, AWindowAsLongAsTheContextRefusesNothing) {
  Changed changed("linear", "sliding_window", 256);
  EXPECT_EQ(changed.Refusal(400, 100), "");
  EXPECT_EQ(changed.Refusal(400, 255), "");
}

TEST(WindowsTest, AMistralWithAWindowOfOneIsScoredButGeneratesOneTokenAtMost) {
  Changed changed("mistral", "sliding_window", 1);
  EXPECT_THAT(changed.Refusal(1, 3), HasSubstr("are more than 1"));
  EXPECT_THAT(changed.Refusal(5, 2), HasSubstr("are more than 1"));
  EXPECT_EQ(changed.Refusal(5, 1), "");
  EXPECT_EQ(SubmitError(changed.engine.get(), ScoreRequest("hello world", "y")), "");
}

TEST(WindowsTest, LayerTypesDecideWhatAMistralIs) {
  EXPECT_GT(ErrorOf("ministral", Changed("ministral", "layer_types", nullptr).copy), kFar);
}

TEST(WindowsTest, NPositionsIsTheContextLength) {
  Changed changed("linear", "n_positions", 64);
  EXPECT_EQ(changed.engine->Info().max_length, 64);
  Changed longer("linear", "n_positions", 300);
  EXPECT_EQ(longer.engine->Info().max_length, 300);
  EXPECT_EQ(SubmitError(longer.engine.get(), Changed::Generate(280, 20)), "");
}

// Beyond max_position_embeddings the angles would depend on each request's length.
TEST(WindowsTest, NPositionsBeyondADynamicRopeIsRefused) {
  CheckpointCopy copy("internlm2");
  copy.SetConfig("n_positions", 257);
  EXPECT_THAT(LoadError(copy.path()), HasSubstr("n_positions: found 257, expected at most"));
}

TEST(WindowsTest, KeysThatMakeAnotherModelAreRefused) {
  const auto refusal = [](const char* key, const Json& value) {
    CheckpointCopy copy("linear");
    Json config = ParseJson(ReadFile(copy.path() / "config.json"), "config.json");
    config[key] = value;
    return CaughtText([&] { ParseModelConfig(config, "config.json"); });
  };
  EXPECT_THAT(refusal("is_causal", false), HasSubstr("is_causal: found false, expected true"));
  EXPECT_THAT(refusal("is_causal", nullptr), HasSubstr("is_causal: found null"));
  EXPECT_EQ(refusal("is_causal", true), "");
  EXPECT_THAT(refusal("per_layer_config", {{"1", {{"sliding_window", 9}}}}),
              HasSubstr("per_layer_config"));
  EXPECT_THAT(refusal("text_config", {{"n_positions", 9}}), HasSubstr("text_config"));
  EXPECT_EQ(refusal("text_config", nullptr), "");
}

}  // namespace
}  // namespace evald::native

// Keys of config.json that hold null, that a family does not use, or whose values are rare:
// tests/golden/native_config/keys.jsonl, made with transformers by tests/oracle/config_golden.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "native_test_util.h"
#include "tests/unit/support/caught.h"
#include "worker/native/config.h"

namespace evald::native {
namespace {

double RopeScale(const ModelConfig& config) {
  return config.rope.type == RopeType::kYarn ? config.rope.attention_factor : 1;
}

TEST(ConfigKeysTest, AreReadAsTransformersReadsThem) {
  const auto path = GoldenPath("").parent_path().parent_path() / "native_config/keys.jsonl";
  size_t served = 0, refused = 0;
  ForEachJsonLine(path, [&](size_t number, const Json& line) {
    SCOPED_TRACE(testing::Message() << "line " << number << ": " << line);
    if (line.contains("error")) {
      EXPECT_THROW(ParseModelConfig(line["config"], "config.json"), Error);
      ++refused;
      return;
    }
    const ModelConfig config = ParseModelConfig(line["config"], "config.json");
    EXPECT_EQ(config.heads, line["heads"]);
    EXPECT_EQ(config.kv_heads, line["kv_heads"]);
    EXPECT_EQ(config.head_dim, line["head_dim"]);
    EXPECT_EQ(config.rotary_dim, line["rotary_dim"]);
    EXPECT_DOUBLE_EQ(RopeScale(config), line["rope_scale"].get<double>());
    EXPECT_EQ(config.norm_eps, line["eps"].get<double>());
    ++served;
  });
  EXPECT_GE(served, 200u);
  EXPECT_GE(refused, 100u);
}

TEST(ConfigKeysTest, ARefusalNamesTheKey) {
  const auto refusal = [](const Json& changes) -> std::string {
    Json config = {{"architectures", {"LlamaForCausalLM"}}, {"model_type", "llama"}};
    config.update(changes);
    return CaughtText([&] { ParseModelConfig(config, "config.json"); });
  };
  EXPECT_EQ(refusal(Json::object()), "");
  EXPECT_THAT(refusal({{"rms_norm_eps", nullptr}}),
              testing::HasSubstr("rms_norm_eps: found null, expected a value"));
  EXPECT_THAT(refusal({{"bos_token_id", {0}}}),
              testing::HasSubstr("bos_token_id: found [0], expected an integer or null"));
  EXPECT_THAT(refusal({{"torch_dtype", "auto"}}),
              testing::HasSubstr("torch_dtype: found \"auto\""));
  EXPECT_THAT(refusal({{"rope_scaling", {{"rope_type", "yarn"}}}}),
              testing::HasSubstr("factor: found nothing"));
}

}  // namespace
}  // namespace evald::native

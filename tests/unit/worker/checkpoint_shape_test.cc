#include "worker/server/checkpoint_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "support.h"
#include "tests/unit/support/temporary_folder.h"
#include "tiny_tokenizer.h"

namespace evald::server {
namespace {

namespace fs = std::filesystem;

class CheckpointShapeTest : public testing::Test {
 protected:
  static constexpr const char* kWeights = "model.safetensors";

  // A checkpoint with tensors of `dtype`, each with its shape, all zeros.
  CheckpointShape Shape(const Json& tensors, const std::string& dtype = "BF16",
                        const Json& config = Json::object()) {
    test::WriteTinyCheckpoint(folder_.path(), 512);
    WriteFileAtomic(folder_.path() / "config.json", ToLine(config));
    Json header = Json::object();
    size_t at = 0;
    for (const auto& [name, shape] : tensors.items()) {
      size_t bytes = DtypeBytes(DtypeFromString(dtype));
      for (const auto& size : shape) bytes *= size.get<size_t>();
      header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
      at += bytes;
    }
    const std::string text = ToLine(header);
    std::string file(8, '\0');
    file[0] = static_cast<char>(text.size() & 255);
    file[1] = static_cast<char>(text.size() >> 8);
    WriteFileAtomic(folder_.path() / kWeights, file + text + std::string(at, '\0'));
    return ReadCheckpointShape(folder_.path());
  }

  TemporaryFolder folder_;
};

const Json kTensors = {{"model.embed_tokens.weight", {4, 2}}, {"lm_head.weight", {4, 2}}};

TEST_F(CheckpointShapeTest, SaysTypeTieAndQuantisation) {
  EXPECT_EQ(Shape(kTensors).dtype, "bfloat16");
  EXPECT_EQ(Shape(kTensors, "F32").dtype, "float32");
  EXPECT_EQ(Shape(kTensors, "F16").dtype, "float16");
  EXPECT_EQ(Shape(kTensors, "F64").dtype, "");
  EXPECT_FALSE(Shape(kTensors).tied);
  EXPECT_TRUE(Shape(kTensors, "F32", {{"tie_word_embeddings", true}}).tied);
  EXPECT_TRUE(Shape({{"model.embed_tokens.weight", {4, 2}}}).tied);
  EXPECT_FALSE(Shape(kTensors).quantised);
  EXPECT_TRUE(Shape(kTensors, "F8_E4M3").quantised);
  EXPECT_TRUE(Shape(kTensors, "F32", {{"quantization_config", {{"bits", 4}}}}).quantised);
}

TEST_F(CheckpointShapeTest, NamesTheFirstDifference) {
  const CheckpointShape had = Shape(kTensors);
  EXPECT_EQ(WhyAnotherShape(had, Shape(kTensors)), "");
  EXPECT_EQ(WhyAnotherShape(had, Shape(kTensors, "BF16", {{"rope_theta", 5}})),
            "config.json differs");
  EXPECT_EQ(WhyAnotherShape(had, Shape(kTensors, "F32")),
            "the tensor lm_head.weight has another shape or type");
  EXPECT_EQ(WhyAnotherShape(had, Shape({{"lm_head.weight", {4, 2}}})),
            "the tensor model.embed_tokens.weight is missing");
  Json more = kTensors;
  more["model.norm.weight"] = {2};
  EXPECT_EQ(WhyAnotherShape(had, Shape(more)), "the tensor model.norm.weight is new");
  WriteFileAtomic(folder_.path() / "trainer_state.json", "{}");
  EXPECT_EQ(WhyAnotherShape(had, Shape(kTensors)), "");
  WriteFileAtomic(folder_.path() / "vocab.json", "{}");
  EXPECT_EQ(WhyAnotherShape(had, Shape(kTensors)), "vocab.json differs");
}

}  // namespace
}  // namespace evald::server

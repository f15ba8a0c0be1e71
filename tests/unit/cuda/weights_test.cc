// The places of weights on the device, for every family, and their content after a pull.
#include <gtest/gtest.h>

#include "cuda_test_util.h"
#include "evald/error.h"
#include "tests/unit/native/native_test_util.h"
#include "transfer_reference.h"
#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/pull.h"

namespace evald::native::cuda {
namespace {

constexpr WeightType kTypes[] = {WeightType::kF32, WeightType::kF16, WeightType::kBF16};

PullOptions SmallChunks() {
  PullOptions options;
  options.threads = 2;
  options.chunk_bytes = 5000;
  return options;
}

// A checkpoint with its weights on the device.
struct OnDevice {
  OnDevice(const std::filesystem::path& directory, WeightType type)
      : config(ReadModelConfig(directory)), weights(directory, config), device(weights, type) {
    Pull(device, SmallChunks());
  }
  ModelConfig config;
  ModelWeights weights;
  DeviceWeights device;
};

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

void CheckNorm(const OnDevice& on, const NormWeights& norm) {
  const DeviceNorm& found = on.device.Of(norm);
  ASSERT_EQ(found.weight != nullptr, norm.present());
  ASSERT_EQ(found.bias != nullptr, !norm.bias.empty());
  if (norm.present()) {
    EXPECT_EQ(Download(found.weight, norm.weight.size() * 4), Floats(norm.weight));
  }
  if (!norm.bias.empty()) {
    EXPECT_EQ(Download(found.bias, norm.bias.size() * 4), Floats(norm.bias));
  }
}

// Checks that all parts follow one another, from an address that 256 divides.
void CheckLinear(const OnDevice& on, const Linear& linear) {
  if (linear.parts.empty()) return;
  const DeviceLinear& found = on.device.Of(linear);
  EXPECT_EQ(found.outputs, linear.outputs());
  EXPECT_EQ(found.inputs, linear.inputs());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(found.weights) % 256, 0u);
  std::string weights, bias;
  bool has_bias = false;
  for (const Linear::Part& part : linear.parts) {
    const Matrix& matrix = part.matrix;
    weights += Expected(matrix.data, matrix.type,
                        static_cast<uint64_t>(matrix.rows * matrix.columns), on.device.type());
    has_bias = has_bias || !part.bias.empty();
    bias += part.bias.empty() ? std::string(static_cast<size_t>(matrix.rows) * 4, '\0')
                              : Floats(part.bias);
  }
  EXPECT_EQ(Download(found.weights, weights.size()), weights);
  ASSERT_EQ(found.bias != nullptr, has_bias);
  if (has_bias) {
    EXPECT_EQ(Download(found.bias, bias.size()), bias);
  }
}

void CheckAll(const OnDevice& on) {
  const ModelWeights& weights = on.weights;
  const Matrix& embedding = weights.embedding();
  const std::string rows =
      Expected(embedding.data, embedding.type,
               static_cast<uint64_t>(embedding.rows * embedding.columns), on.device.type());
  EXPECT_EQ(Download(on.device.OfMatrix(embedding), rows.size()), rows);
  for (const LayerWeights& layer : weights.layers()) {
    for (const NormWeights* norm :
         {&layer.attention_norm, &layer.attention_after_norm, &layer.mlp_norm,
          &layer.mlp_after_norm, &layer.query_norm, &layer.key_norm}) {
      CheckNorm(on, *norm);
    }
    for (const Linear* linear :
         {&layer.qkv, &layer.output, &layer.mlp.in, &layer.mlp.down, &layer.router}) {
      CheckLinear(on, *linear);
    }
    for (const FeedForward& expert : layer.experts) {
      CheckLinear(on, expert.in);
      CheckLinear(on, expert.down);
    }
  }
  CheckNorm(on, weights.norm());
  CheckLinear(on, weights.head());
}

TEST(DeviceWeightsTest, EveryTensorOfEveryFamilyIsInItsPlace) {
  for (const std::string& name : ServedGoldenNames()) {
    for (const WeightType type : kTypes) {
      SCOPED_TRACE(name + " as type " + std::to_string(static_cast<int>(type)));
      CheckAll(OnDevice(GoldenPath(name), type));
    }
  }
}

TEST(DeviceWeightsTest, TransfersFollowTheFiles) {
  for (const std::string& name : ServedGoldenNames()) {
    const OnDevice on(GoldenPath(name), WeightType::kBF16);
    const TensorFiles& files = on.weights.files();
    uint64_t bytes = 0;
    for (size_t i = 0; i < on.device.transfers().size(); ++i) {
      const DeviceWeights::Transfer& transfer = on.device.transfers()[i];
      bytes += transfer.elements * BytesOf(transfer.stored);
      if (i == 0) continue;
      const auto before = files.PlaceOf(on.device.transfers()[i - 1].from);
      EXPECT_TRUE(before < files.PlaceOf(transfer.from)) << name << ", transfer " << i;
    }
    EXPECT_LE(bytes, on.weights.mapped_bytes());
    EXPECT_GT(bytes, on.weights.mapped_bytes() * 9 / 10) << name << ": all but headers";
  }
}

TEST(DeviceWeightsTest, ATiedEmbeddingIsThereOnce) {
  int tied = 0, untied = 0;
  for (const std::string& name : ServedGoldenNames()) {
    const OnDevice on(GoldenPath(name), WeightType::kBF16);
    const void* embedding = on.device.OfMatrix(on.weights.embedding());
    const void* head = on.device.Of(on.weights.head()).weights;
    EXPECT_EQ(embedding == head, on.config.tied_embeddings) << name;
    ++(on.config.tied_embeddings ? tied : untied);
  }
  EXPECT_GT(tied, 0);
  EXPECT_GT(untied, 0);
}

TEST(DeviceWeightsTest, TheNextCheckpointTakesTheSamePlaces) {
  OnDevice first(GoldenPath("qwen2"), WeightType::kBF16);
  CheckpointCopy copy("qwen2");
  copy.ChangeTensors("", [](Tensors::Tensor* tensor) {
    std::reverse(tensor->data.begin(), tensor->data.end());
    // makes the number finite
    for (char& byte : tensor->data) byte = static_cast<char>(byte & 0x3f);
  });
  const ModelWeights second(copy.path(), first.config);
  const DeviceLinear before = first.device.Of(first.weights.layers()[0].qkv);
  ASSERT_TRUE(first.device.SameShape(second, WeightType::kBF16));
  EXPECT_FALSE(first.device.SameShape(second, WeightType::kF16));
  first.device.Rebind(second);
  EXPECT_THROW(first.device.Of(first.weights.layers()[0].qkv), Error);
  const DeviceLinear after = first.device.Of(second.layers()[0].qkv);
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_EQ(after.bias, before.bias);
  ASSERT_NE(after.bias, nullptr);
  EXPECT_NE(FirstWrong(first.device.transfers()), "") << "not pulled yet";
  Pull(first.device, SmallChunks());
  EXPECT_EQ(FirstWrong(first.device.transfers()), "");
}

TEST(DeviceWeightsTest, OtherShapesAreToldApart) {
  const std::vector<std::string> names = ServedGoldenNames();
  for (const std::string& name : names) {
    const OnDevice on(GoldenPath(name), WeightType::kBF16);
    CheckpointCopy copy(name);
    const ModelConfig config = ReadModelConfig(copy.path());
    EXPECT_TRUE(on.device.SameShape(ModelWeights(copy.path(), config), WeightType::kBF16));
  }
  OnDevice llama(GoldenPath("llama3"), WeightType::kBF16);
  for (const std::string other : {"untied", "gpt_neox", "qwen2", "qwen3_moe", "internlm2"}) {
    const ModelConfig config = ReadModelConfig(GoldenPath(other));
    const ModelWeights weights(GoldenPath(other), config);
    EXPECT_FALSE(llama.device.SameShape(weights, WeightType::kBF16)) << other;
    EXPECT_THROW(llama.device.Rebind(weights), Error) << other;
  }
  EXPECT_EQ(FirstWrong(llama.device.transfers()), "") << "a refused one changes nothing";
}

TEST(DeviceWeightsTest, TheTypeIsTheOneOfMostBytes) {
  CheckpointCopy copy("llama3");
  const auto to = [&](const std::string& part, const std::string& dtype, size_t bytes) {
    copy.ChangeTensors(part, [&](Tensors::Tensor* tensor) {
      size_t count = 1;
      for (const int64_t size : tensor->shape) count *= static_cast<size_t>(size);
      tensor->dtype = dtype;
      tensor->data.assign(count * bytes, '\0');
    });
    const ModelConfig config = ReadModelConfig(copy.path());
    return TypeOfMost(ModelWeights(copy.path(), config));
  };
  EXPECT_EQ(to("", "F16", 2), WeightType::kF16);
  EXPECT_EQ(to("norm", "F32", 4), WeightType::kF16);
  EXPECT_EQ(to("", "BF16", 2), WeightType::kBF16);
  EXPECT_EQ(to("", "F32", 4), WeightType::kF32);
}

}  // namespace
}  // namespace evald::native::cuda

// Whole models on the emulated device, against transformers in fp32 (tests/oracle/native_golden.py)
// and against themselves: no number may depend on the work beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../native/native_test_util.h"
#include "cuda_test_util.h"
#include "worker/native/cuda/pull.h"
#include "worker/native/sampler.h"

namespace evald::native {

bool operator==(const Answer& a, const Answer& b) {
  return a.token == b.token && a.log_probability == b.log_probability && a.defined == b.defined;
}

}  // namespace evald::native

namespace evald::native::cuda {
namespace {

class ModelsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, ModelsTest, testing::ValuesIn(ServedGoldenNames()),
                         [](const auto& info) { return info.param; });

CudaModel Make(const std::string& golden, const CudaModelOptions& options = {}) {
  return CudaModel(GoldenPath(golden), options);
}

TEST_P(ModelsTest, Fp32LogitsAreTransformers) {
  CudaModel model(GoldenPath(GetParam()), {.type = WeightType::kF32});
  EXPECT_LT(LogitsSpread(GetParam(), &model, {1, 3, 33, 129}).largest, 1e-4);
}

// The distance from fp32 is at most that of transformers in bf16. fp16 has three bits more.
TEST_P(ModelsTest, HalvesAreWithinTheirSpread) {
  const Json spread = Golden(GetParam())["bf16"];
  CudaModel bf16(GoldenPath(GetParam()), {.type = WeightType::kBF16});
  const Spread found = LogitsSpread(GetParam(), &bf16, {2, 7, 17, 63, 65, 129});
  EXPECT_LT(found.rms, spread["rms"].get<double>());
  EXPECT_LT(found.largest, 1.5 * spread["largest"].get<double>());
  CudaModel fp16(GoldenPath(GetParam()), {.type = WeightType::kF16});
  EXPECT_LT(LogitsSpread(GetParam(), &fp16, {2, 7, 17, 65}).rms, spread["rms"].get<double>() / 3);
}

TEST_P(ModelsTest, EveryChunkingHasTheSameBits) {
  const std::vector<int32_t> tokens = SomeTokens(75);
  CudaModel model(GoldenPath(GetParam()));
  const auto expected = AllLogits(&model, tokens, 75);
  for (const int64_t chunk : {1, 13}) {
    EXPECT_TRUE(SameBits(AllLogits(&model, tokens, chunk), expected)) << "by " << chunk;
  }
}

TEST(DeviceTest, AllFamiliesButGemmaAreServed) {
  for (const std::string& name : GoldenNames()) {
    const std::vector<std::string> served = ServedGoldenNames();
    const bool found = std::find(served.begin(), served.end(), name) != served.end();
    EXPECT_NE(found, name.starts_with("gemma")) << name;
  }
}

TEST(DeviceTest, EveryTypeHasTheSameBits) {
  const std::vector<int32_t> tokens = SomeTokens(140);
  for (const WeightType type : {WeightType::kF32, WeightType::kBF16, WeightType::kF16}) {
    CudaModel model(GoldenPath("llama3"), {.type = type});
    const auto expected = AllLogits(&model, tokens, 140);
    for (const int64_t chunk : {13, 64}) {
      EXPECT_TRUE(SameBits(AllLogits(&model, tokens, chunk), expected))
          << static_cast<int>(type) << " by " << chunk;
    }
  }
}

// Sequences that are decoded together. Some have a common prefix.
struct Decoding {
  std::vector<std::vector<Answer>> answers;  // by sequence
  int64_t replayed = 0;
};

// `beside`: the number of sequences decoded together. `shared`: the prefix is computed once.
// `ahead`: each batch is queued before the answers of the previous one are collected.
Decoding Decode(CudaModel* model, size_t beside, bool shared, bool ahead = false) {
  constexpr int kSequences = 7, kSteps = 4;
  const std::vector<int32_t> prefix_tokens = SomeTokens(kPagePositions + 9);
  Sequence prefix(model, prefix_tokens);
  if (shared) model->model->Forward({prefix.Next(kPagePositions + 9, kPagePositions + 9)}, {});
  std::vector<Sequence> sequences;
  std::vector<int> prompts;
  for (int s = 0; s < kSequences; ++s) {
    std::vector<int32_t> tokens = s % 3 == 2 ? SomeTokens(3 + 17 * s, s) : prefix_tokens;
    const std::vector<int32_t> own = SomeTokens(2 + 5 * s, s + 100);
    tokens.insert(tokens.end(), own.begin(), own.end());
    prompts.push_back(static_cast<int>(tokens.size()));
    tokens.resize(tokens.size() + kSteps, 0);
    sequences.emplace_back(model, tokens, &prefix, shared && s % 3 != 2 ? 1 : 0);
  }
  Decoding decoding;
  decoding.answers.resize(kSequences);
  for (size_t first = 0; first < kSequences; first += beside) {
    const size_t end = std::min<size_t>(kSequences, first + beside);
    std::vector<Segment> segments;
    for (size_t s = first; s < end; ++s) {
      const auto count = static_cast<int>(prompts[s] - sequences[s].computed);
      segments.push_back(sequences[s].Next(count, count - 1));
    }
    const auto collect = [&] {
      const std::vector<Answer> answers = model->device.Collect();
      for (size_t s = first; s < end; ++s) {
        EXPECT_TRUE(answers.at(s - first).defined);
        decoding.answers[s].push_back(answers[s - first]);
      }
    };
    for (int step = 0; step <= kSteps; ++step) {
      model->model->Forward(segments, std::vector<Wish>(end - first));
      if (!ahead || step > 0) collect();
      segments.clear();
      for (size_t s = first; s < end && step < kSteps; ++s) {
        sequences[s].tokens[static_cast<size_t>(prompts[s] + step)] =
            ahead ? TokenOfAnswer(static_cast<int64_t>(s - first))
                  : decoding.answers[s].back().token;
        segments.push_back(sequences[s].Next(1));
      }
    }
    if (ahead) collect();
  }
  decoding.replayed = model->device.Report()["graphs_replayed"].get<int64_t>();
  return decoding;
}

TEST_P(ModelsTest, GraphsGroupsAndSharedPrefixesChangeNoBit) {
  CudaModelOptions without;
  without.device.graphs = false;
  CudaModel plain(GoldenPath(GetParam()), without);
  const Decoding alone = Decode(&plain, 1, false);
  EXPECT_EQ(alone.replayed, 0);
  CudaModel model(GoldenPath(GetParam()));
  EXPECT_EQ(Decode(&model, 7, true).answers, alone.answers);
  const Decoding grouped = Decode(&model, 3, true);
  EXPECT_EQ(grouped.answers, alone.answers);
  EXPECT_EQ(Decode(&model, 7, true, /*ahead=*/true).answers, alone.answers);
  EXPECT_EQ(Decode(&plain, 3, false, /*ahead=*/true).answers, alone.answers);
  EXPECT_GT(grouped.replayed, 4);
}

// Keys of several chunks (the golden files end within one), and so little scratch memory that
// attention is computed in parts.
TEST(DeviceTest, LongContexts) {
  const std::vector<int32_t> tokens = SomeTokens(560);
  const std::vector<int64_t> looked_at = {0, 300, 511, 512, 559};
  for (const char* golden : {"mistral", "llama3"}) {
    CheckpointCopy copy(golden);
    copy.SetConfig("max_position_embeddings", 2048);
    BareModel cpu(copy.path());
    const auto expected = cpu.Logits(tokens, looked_at, 256);
    CudaModel fp32(copy.path(), {.type = WeightType::kF32});
    const auto found = AllLogits(&fp32, tokens, 256);
    for (size_t i = 0; i < looked_at.size(); ++i) {
      const auto& row = found[static_cast<size_t>(looked_at[i])];
      for (size_t v = 0; v < row.size(); ++v) ASSERT_NEAR(row[v], expected[i][v], 2e-4);
    }
    CudaModel whole(copy.path());
    const auto logits = AllLogits(&whole, tokens, 560);
    CudaModelOptions tight;
    tight.device.attention_scratch_bytes = 40 * AttentionScratchBytes(1, 4, 24);
    CudaModel cut(copy.path(), tight);
    EXPECT_TRUE(SameBits(AllLogits(&cut, tokens, 300), logits)) << golden;
    Sequence sequence(&whole, tokens);
    EXPECT_TRUE(whole.model->Logits({sequence.Next(508, 508)}).empty());
    for (size_t row = 508; row < 516; ++row) {
      EXPECT_TRUE(SameBits({whole.model->Logits({sequence.Next(1)})}, {logits[row]}))
          << golden << " " << row;
    }
  }
}

TEST(DeviceTest, MoreRowsThanExpected) {
  const std::vector<int32_t> tokens = SomeTokens(90);
  CudaModelOptions small;
  small.device.rows_max = 16;
  CudaModel grows(GoldenPath("qwen3_moe"), small);
  CudaModel model = Make("qwen3_moe");
  EXPECT_TRUE(SameBits(AllLogits(&grows, tokens, 10), AllLogits(&model, tokens, 90)));
  EXPECT_TRUE(SameBits(AllLogits(&grows, tokens, 80), AllLogits(&model, tokens, 90)));
}

double LogProbability(const std::vector<float>& logits, int32_t target) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return static_cast<double>(logits[static_cast<size_t>(target)]) - top - std::log(sum);
}

TEST(DeviceTest, AnswersAreWhatTheLogitsSay) {
  CudaModel model = Make("yarn");
  const std::vector<int32_t> tokens = SomeTokens(90);
  const auto logits = AllLogits(&model, tokens, 90);
  GenerationSettings sampling;
  sampling.do_sample = true;
  sampling.temperature = 0.7;
  sampling.top_k = 50;
  sampling.top_p = 0.9;
  std::vector<Wish> wishes(90);
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (i % 3 == 0) wishes[i].target = static_cast<int32_t>(i * 3);
    if (i % 3 == 1) {
      wishes[i].settings = &sampling;
      wishes[i].uniform = static_cast<double>(i) / 90;
    }
  }
  Sequence sequence(&model, tokens);
  model.model->Forward({sequence.Next(90)}, wishes);
  const std::vector<Answer> answers = model.device.Collect();
  ASSERT_EQ(answers.size(), 90u);
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto greedy = static_cast<int32_t>(std::max_element(logits[i].begin(), logits[i].end()) -
                                             logits[i].begin());
    const bool sampled = wishes[i].settings != nullptr;
    EXPECT_EQ(answers[i].token, sampled ? Sample(logits[i].data(), model.config.vocab_size,
                                                 sampling, wishes[i].uniform)
                                        : greedy);
    if (wishes[i].target < 0) continue;
    EXPECT_NEAR(answers[i].log_probability, LogProbability(logits[i], wishes[i].target), 1e-9);
  }
}

// Rows without wanted logits are dropped before the last layer's attention.
TEST(DeviceTest, OnlyWantedRowsAreAnswered) {
  for (const char* golden : {"qwen3", "olmo2", "gpt_neox"}) {
    CudaModel model = Make(golden);
    const std::vector<int32_t> tokens = SomeTokens(100);
    const auto logits = AllLogits(&model, tokens, 100);
    Sequence one(&model, tokens), other(&model, tokens);
    EXPECT_TRUE(model.model->Logits({one.Next(30, 30)}).empty());
    const std::vector<float> kept =
        model.model->Logits({one.Next(40, 33), other.Next(20, 20), other.Next(50, 49)});
    std::vector<float> expected;
    for (const size_t row : {63, 64, 65, 66, 67, 68, 69, 69}) {
      expected.insert(expected.end(), logits[row].begin(), logits[row].end());
    }
    EXPECT_EQ(kept, expected) << golden;
  }
}

// See Device::StoreKeysAndValues. Heads of 16 dimensions use tensor cores, but not in fp32.
TEST(DeviceTest, NumbersThatAreNotFiniteReachNoPositionBeforeThem) {
  constexpr size_t kBad = 71;
  std::vector<int32_t> tokens = SomeTokens(76);
  std::replace(tokens.begin(), tokens.end(), 5, 6);
  tokens[kBad] = 5;
  const std::pair<const char*, WeightType> cases[] = {{"yarn", WeightType::kBF16},
                                                      {"yarn", WeightType::kF32},
                                                      {"internlm2", WeightType::kF16},
                                                      {"qwen3_moe", WeightType::kBF16}};
  for (const auto& [golden, type] : cases) {
    CheckpointCopy copy(golden);
    copy.MakeEmbeddingNan(5);
    CudaModel model(copy.path(), {.type = type}), good(GoldenPath(golden), {.type = type});
    auto expected = AllLogits(&good, tokens, 76);
    expected.resize(kBad);
    for (const int64_t chunk : {13, 76}) {
      SCOPED_TRACE(testing::Message() << golden << " by " << chunk);
      auto found = AllLogits(&model, tokens, chunk);
      for (size_t row = kBad; row < found.size(); ++row) {
        ASSERT_TRUE(std::isnan(found[row][0])) << "row " << row;
      }
      found.resize(kBad);
      EXPECT_TRUE(SameBits(found, expected));
    }
  }
}

// Another checkpoint of the same shape replaces the first one. The graphs stay valid.
TEST(DeviceTest, WeightsAreSwappedBelowGraphs) {
  CheckpointCopy changed("llama3");
  changed.ChangeTensors("mlp.down_proj", [](Tensors::Tensor* tensor) {
    for (size_t i = 1; i < tensor->data.size(); i += 2) tensor->data[i] ^= '\x80';  // signs of fp16
  });
  CudaModel model = Make("llama3");
  const Decoding before = Decode(&model, 3, true);
  EXPECT_GT(before.replayed, 0);
  const ModelWeights next(changed.path(), model.config);
  ASSERT_TRUE(model.device_weights.SameShape(next, model.device_weights.type()));
  model.device_weights.Rebind(next);
  Pull(model.device_weights, {.threads = 1});
  model.model = std::make_unique<Model>(model.config, next, &model.device);
  const Decoding after = Decode(&model, 3, true);
  EXPECT_GT(after.replayed, before.replayed);
  CudaModel fresh(changed.path());
  EXPECT_EQ(after.answers, Decode(&fresh, 3, true).answers);
  EXPECT_NE(after.answers, before.answers);
}

}  // namespace
}  // namespace evald::native::cuda

// Against transformers and lm_eval's hf backend in fp32 (tests/oracle/native_golden.py).
#include <gtest/gtest.h>

#include "native_test_util.h"

namespace evald::native {
namespace {

class GoldenTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenTest, testing::ValuesIn(GoldenNames()),
                         [](const auto& info) { return info.param; });

TEST_P(GoldenTest, LogitsWithEveryInstructionSet) {
  for (const std::string& kernels : AvailableKernels()) {
    BareModel model(GoldenPath(GetParam()), kernels);
    for (const int64_t chunk : {256, 5}) {
      EXPECT_LT(LogitsError(GetParam(), &model, chunk), 1e-4) << kernels << ", chunk " << chunk;
    }
  }
}

// These are the weights with which a model in bf16 computes. So this engine's distance from fp32
// may be at most that of transformers in bf16.
TEST_P(GoldenTest, WithinTheSpreadOfBf16) {
  const Json golden = Golden(GetParam());
  BareModel model(GoldenPath(GetParam()));
  EXPECT_LT(LogitsError(GetParam(), &model), golden["bf16"]["rms"].get<double>());
}

// The same for products that take activations in bf16, as all of transformers' products do.
TEST_P(GoldenTest, Bf16ProductsAreWithinTheSpreadOfBf16) {
  if (!HasBf16Products()) GTEST_SKIP() << "this processor has no bf16 dot instruction";
  const Json golden = Golden(GetParam());
  BareModel model(GoldenPath(GetParam()), "avx512_bf16"), exact(GoldenPath(GetParam()), "avx512");
  const Spread found = LogitsSpread(GetParam(), &model);
  EXPECT_LT(found.rms, golden["bf16"]["rms"].get<double>());
  EXPECT_LT(found.largest, golden["bf16"]["largest"].get<double>());
  EXPECT_EQ(found.largest > 10 * LogitsError(GetParam(), &exact), StoredType(GetParam()) == "BF16");
}

// Rounding each step's output is what transformers in bf16 does. Its distance from fp32 is the
// measure of the parity check (worker/parity/).
TEST_P(GoldenTest, RoundedStepsHaveTheSpreadOfBf16) {
  if (StoredType(GetParam()) != "BF16") GTEST_SKIP() << "bf16 changes its weights";
  BareModel model(GoldenPath(GetParam()), "rounded_bf16");
  const double spread = LogitsSpread(GetParam(), &model).rms;
  const double expected = Golden(GetParam())["bf16"]["rms"].get<double>();
  EXPECT_GT(spread, 0.5 * expected);
  EXPECT_LT(spread, 1.5 * expected);
}

TEST_P(GoldenTest, GreedyTextIsIdentical) {
  // Recorded without end tokens.
  CheckpointCopy copy(GetParam());
  copy.SetConfig("eos_token_id", nullptr);
  std::filesystem::remove(copy.path() / "generation_config.json");
  for (const std::string& kernels : AvailableKernels()) {
    const auto engine = LoadedEngine(copy.path(), {{"kernels", kernels}});
    std::vector<Request> requests;
    const Json golden = Golden(GetParam())["greedy"];
    for (const Json& item : golden) {
      requests.push_back(GenerateRequest(item["prompt"], {}, 64));
    }
    const std::vector<Generation> answers = AnswerAll(engine.get(), requests);
    for (size_t i = 0; i < answers.size(); ++i) {
      const auto generated = golden[i]["generated"].get<std::vector<int32_t>>();
      const bool has_eos = std::count(generated.begin(), generated.end(), 1) > 0;
      if (has_eos) continue;  // the EOS text is a stop string of every request
      EXPECT_EQ(answers[i].text, golden[i]["text"].get<std::string>()) << kernels << " " << i;
      EXPECT_EQ(answers[i].tokens_out, 64);
      EXPECT_EQ(answers[i].finish, FinishReason::kLength);
    }
  }
}

TEST_P(GoldenTest, Loglikelihoods) {
  const auto engine = LoadedEngine(GoldenPath(GetParam()));
  const Json golden = Golden(GetParam())["harness"]["loglikelihood"];
  std::vector<Request> requests;
  for (const Json& item : golden) {
    requests.push_back(ScoreRequest(item["context"], item["continuation"]));
  }
  int greedy = 0, truncated = 0;
  const std::vector<Generation> answers = AnswerAll(engine.get(), requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto expected = golden[i]["loglikelihood"].get<double>();
    // The harness sums in fp32.
    EXPECT_NEAR(answers[i].loglikelihood, expected, 1e-4 + 1e-6 * std::abs(expected)) << i;
    EXPECT_EQ(answers[i].is_greedy, golden[i]["is_greedy"].get<bool>()) << i;
    EXPECT_EQ(answers[i].finish, FinishReason::kScored);
    greedy += answers[i].is_greedy;
    truncated += answers[i].truncated > 0;
  }
  EXPECT_GT(greedy, 0);
  EXPECT_GT(truncated, 1);
}

TEST_P(GoldenTest, RollingLoglikelihoods) {
  const auto engine = LoadedEngine(GoldenPath(GetParam()));
  const Json golden = Golden(GetParam())["harness"]["rolling"];
  std::vector<Request> requests;
  for (const Json& item : golden) {
    Request request;
    request.kind = RequestKind::kLoglikelihoodRolling;
    request.context = item["text"];
    requests.push_back(request);
  }
  const std::vector<Generation> answers = AnswerAll(engine.get(), requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto expected = golden[i]["loglikelihood"].get<double>();
    EXPECT_NEAR(answers[i].loglikelihood, expected, 1e-4 + 1e-6 * std::abs(expected)) << i;
  }
  EXPECT_EQ(answers[0].tokens_out + answers[0].tokens_in, GetParam() == "untied" ? 2 : 0)
      << "the text without characters has only what the tokenizer puts before it";
}

TEST_P(GoldenTest, GeneratedTexts) {
  const auto engine = LoadedEngine(GoldenPath(GetParam()));
  const Json golden = Golden(GetParam())["harness"]["generate"];
  std::vector<Request> requests;
  for (const Json& item : golden) {
    requests.push_back(GenerateRequest(item["context"], item["until"], item["max_gen_toks"]));
  }
  const std::vector<Generation> answers = AnswerAll(engine.get(), requests);
  std::map<FinishReason, int> finishes;
  int truncated = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].text, golden[i]["text"].get<std::string>()) << i;
    ++finishes[answers[i].finish];
    truncated += answers[i].truncated > 0;
  }
  EXPECT_GT(finishes[FinishReason::kStop], 2);
  EXPECT_GE(finishes[FinishReason::kLength], 2);
  EXPECT_GE(truncated, 2);
  EXPECT_TRUE(GetParam() != "llama3" || finishes[FinishReason::kEos] > 0);
}

}  // namespace
}  // namespace evald::native

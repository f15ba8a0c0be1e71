// The engine on the emulated device: batches are queued before the answers that they continue are
// there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "evald/error.h"
#include "tests/unit/native/native_test_util.h"
#include "tokenizer/tokenizer.h"
#include "worker/native/cuda/cuda_backend.h"

namespace evald::native::cuda {
namespace {

std::unique_ptr<Engine> GpuEngine(const std::filesystem::path& directory, Json settings) {
  EngineOptions options;
  options.name = "native";
  options.device = ListDevices()["devices"][0]["id"].get<std::string>();
  settings["kv_cache"] = settings.value("kv_cache", 64 << 20);
  options.settings = std::move(settings);
  options.seed = 1234;
  auto engine = MakeCudaEngine(options);
  engine->Load(directory);
  return engine;
}

// Fewer requests than in the processor's tests, since the emulated device is slow.
std::vector<Request> SomeRequests() {
  std::vector<Request> requests;
  for (const Request& request : MixedRequests()) {
    if (request.doc_id % 100 < 2 || request.doc_id % 100 == 3) requests.push_back(request);
  }
  return requests;
}

class AheadTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, AheadTest, testing::Values("mistral", "qwen3_moe"),
                         [](const auto& info) { return info.param; });

TEST_P(AheadTest, ChangesNoAnswer) {
  const std::vector<Request> requests = SomeRequests();
  const auto in_turn = GpuEngine(GoldenPath(GetParam()), {{"ahead", false}});
  const auto expected = AnswerLines(in_turn.get(), requests);
  for (const Json& settings :
       {Json{{"graphs", false}, {"concurrency", 3}}, Json{{"concurrency", 5}, {"chunk", 24}}}) {
    const auto engine = GpuEngine(GoldenPath(GetParam()), settings);
    EXPECT_EQ(AnswerLines(engine.get(), requests), expected) << settings;
  }
  // The number of rows is the same: rows computed in vain are not counted.
  const auto ahead = GpuEngine(GoldenPath(GetParam()), Json::object());
  EXPECT_EQ(AnswerLines(ahead.get(), requests), expected);
  EXPECT_EQ(ahead->WorkReport()["rows_computed"], in_turn->WorkReport()["rows_computed"]);
}

TEST(GpuEngineTest, AModelWithoutKernelsIsRefusedWithTheReason) {
  const std::pair<const char*, const char*> refused[] = {{"gemma2", "capped attention scores"},
                                                         {"gemma3_nested", "capped logits"},
                                                         {"gemma3", "two ropes"}};
  for (const auto& [golden, lacking] : refused) {
    try {
      GpuEngine(GoldenPath(golden), Json::object());
      ADD_FAILURE() << golden << " is loaded";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInput);
      EXPECT_NE(std::string(e.what()).find(lacking), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("cpu:0"), std::string::npos) << e.what();
    }
  }
}

// The processor applies settings that change logits to the device's results, so no batch is queued
// before that.
TEST(AheadEngineTest, GenerationSettingsAreTheProcessors) {
  CheckpointCopy copy("linear");
  copy.Write(
      "generation_config.json",
      R"({"eos_token_id": 1, "repetition_penalty": 1.2, "no_repeat_ngram_size": 2, "min_new_tokens": 5, "min_p": 0.02})");
  std::vector<Request> requests;
  for (int doc = 0; doc < 6; ++doc) {
    requests.push_back(GenerateRequest("The answer is " + std::to_string(doc), {}, 12));
    requests.back().doc_id = doc;
    requests.back().sampling.do_sample = doc % 2 == 1;
    // The device's own choice, in one batch with the others.
    if (doc > 3)
      requests.back().sampling.settings = {{"repetition_penalty", nullptr},
                                           {"no_repeat_ngram_size", 0},
                                           {"min_new_tokens", 0},
                                           {"min_p", 0.0}};
  }
  const auto processor = LoadedEngine(copy.path());
  const auto expected = AnswerLines(processor.get(), requests);
  for (const Json& settings :
       {Json{{"ahead", false}}, Json::object(), Json{{"concurrency", 2}}, Json{{"chunk", 9}}}) {
    const auto engine = GpuEngine(copy.path(), settings);
    EXPECT_EQ(AnswerLines(engine.get(), requests), expected) << settings;
  }
}

// Stop strings stand in the thinking, and the end is a text, or a token that the model generates.
TEST(AheadEngineTest, ThinkingIsTheProcessors) {
  const auto processor = LoadedEngine(GoldenPath("linear"));
  const Generation said = AnswerAll(processor.get(), {GenerateRequest("The answer is", {}, 16)})[0];
  const auto tokenizer = Tokenizer::Load(GoldenPath("linear"));
  const std::vector<int32_t> tokens = tokenizer->Encode(said.text, false);
  ASSERT_GT(tokens.size(), 8U);
  std::vector<Request> requests;
  for (const ThinkEnd& end :
       {ThinkEnd{"never said", -1}, ThinkEnd{"", tokens[4]}, ThinkEnd{"", tokens[8]}}) {
    requests.push_back(GenerateRequest("The answer is", {said.text.substr(2, 1)}, 16));
    requests.back().doc_id = static_cast<int64_t>(requests.size());
    requests.back().sampling.think_end = end;
  }
  const auto expected = AnswerAll(processor.get(), requests);
  for (const Json& settings : {Json{{"ahead", false}}, Json::object()}) {
    const auto engine = GpuEngine(GoldenPath("linear"), settings);
    const auto answers = AnswerAll(engine.get(), requests);
    for (size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(ToJson(answers[i]), ToJson(expected[i])) << settings;
      EXPECT_EQ(answers[i].tokens_out, 16) << "no stop string ended it";
    }
  }
  EXPECT_FALSE(expected[1].thinking.empty() && expected[2].thinking.empty());
}

// The next sequence enters while the device still computes the last row of the sequence before it
// in vain.
TEST(AheadEngineTest, OneAtATime) {
  const auto one = GpuEngine(GoldenPath("llama3"), {{"concurrency", 1}, {"ahead", false}});
  const auto engine = GpuEngine(GoldenPath("llama3"), {{"concurrency", 1}});
  std::vector<Request> requests;
  for (int doc = 0; doc < 4; ++doc) {
    requests.push_back(GenerateRequest("The answer is " + std::to_string(doc), {"e", "a"}, 30));
    requests.back().doc_id = doc;
  }
  EXPECT_EQ(AnswerLines(engine.get(), requests), AnswerLines(one.get(), requests));
}

// Requests are cancelled while a batch is under way. Later requests get their own answers.
TEST(AheadEngineTest, WhatWasCancelledIsForgotten) {
  const std::vector<Request> requests = SomeRequests();
  const auto fresh = GpuEngine(GoldenPath("llama3"), Json::object());
  const auto expected = AnswerLines(fresh.get(), requests);
  const auto engine = GpuEngine(GoldenPath("llama3"), Json::object());
  for (uint64_t tag = 0; tag < 8; ++tag) {
    engine->Submit(tag, GenerateRequest("To be cancelled " + std::to_string(tag), {}, 40));
  }
  for (int step = 0; step < 3; ++step) engine->Step(std::chrono::milliseconds(0));
  engine->CancelAll();
  EXPECT_EQ(AnswerLines(engine.get(), requests), expected);
  engine->Load(GoldenPath("llama3"));  // the last batch's answers have not been collected yet
  EXPECT_EQ(AnswerLines(engine.get(), requests), expected);
}

// Expects the same tokens with nearly the same numbers, and `top` likeliest ones beside each.
void ExpectAlike(const std::vector<TokenReport>& found, const std::vector<TokenReport>& expected,
                 int top) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t t = 0; t < found.size(); ++t) {
    EXPECT_EQ(found[t].token, expected[t].token);
    ASSERT_EQ(found[t].top.size(), static_cast<size_t>(std::max(top, 0)));
    if (top < 0) continue;
    EXPECT_NEAR(found[t].log_probability, expected[t].log_probability, 1e-4);
    for (size_t n = 0; n < found[t].top.size(); ++n) {
      const TokenLogProbability& likely = found[t].top[n];
      EXPECT_NEAR(likely.log_probability, expected[t].top[n].log_probability, 1e-4);
      EXPECT_TRUE(likely.token != found[t].token ||
                  likely.log_probability == found[t].log_probability);
    }
  }
}

// The reports on tokens are those of the processor, whoever chooses the tokens. Both compute in
// fp32.
TEST(AheadEngineTest, ReportsOnTokensAreTheProcessors) {
  std::vector<Request> requests = SomeRequests();
  std::erase_if(requests,
                [](const Request& r) { return r.kind == RequestKind::kLoglikelihoodRolling; });
  requests.push_back(GenerateRequest("The answer is", {}, 6));
  requests.back().sampling.settings = {{"repetition_penalty", 1.2}};
  const auto processor = LoadedEngine(GoldenPath("linear"));
  for (const int top : {TokenWatch::kNoLogProbabilities, 0, 1, 4}) {
    const auto expected = WatchAll(processor.get(), requests, top);
    const auto engine = GpuEngine(GoldenPath("linear"), Json::object());
    const auto found = WatchAll(engine.get(), requests, top);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(found[i].generation.text, expected[i].generation.text);
      ExpectAlike(found[i].reports, expected[i].reports, top);
    }
  }
}

// A request is cancelled while the device computes its next row; the others go on.
TEST(AheadEngineTest, OneRequestOfABatchIsCancelled) {
  const auto fresh = GpuEngine(GoldenPath("llama3"), Json::object());
  std::vector<Request> requests;
  for (int doc = 0; doc < 4; ++doc) {
    requests.push_back(GenerateRequest("The answer is " + std::to_string(doc), {}, 20));
    requests.back().doc_id = doc;
  }
  const auto expected = AnswerAll(fresh.get(), requests);
  const auto engine = GpuEngine(GoldenPath("llama3"), Json::object());
  for (size_t i = 0; i < requests.size(); ++i) engine->Submit(i, requests[i]);
  for (int step = 0; step < 5; ++step) engine->Step(std::chrono::milliseconds(0));
  EXPECT_TRUE(engine->Cancel(1));
  while (engine->pending() > 0) {
    for (const Finished& finished : engine->Step(std::chrono::milliseconds(50))) {
      EXPECT_NE(finished.tag, 1u);
      EXPECT_EQ(finished.generation.text, expected[finished.tag].text);
    }
  }
}

TEST(AheadEngineTest, NamesTheTokenThatCannotBeDrawnFromLogitsThatAreNotFinite) {
  CheckpointCopy copy("llama3");
  copy.ChangeTensors("embed_tokens", [](Tensors::Tensor* tensor) {
    const size_t row = tensor->data.size() / static_cast<size_t>(tensor->shape[0]);
    // NaN in fp16 in all rows except those of the first tokens.
    for (size_t i = 3 * row; i < tensor->data.size(); i += 2)
      tensor->data.replace(i, 2, "\x00\x7e", 2);
  });
  const auto refusal = [&](bool ahead) -> std::string {
    const auto engine = GpuEngine(copy.path(), {{"ahead", ahead}});
    Request request = GenerateRequest("The answer", {}, 8);
    request.sampling.do_sample = true;
    engine->Submit(0, request);
    std::vector<Finished> finished;
    while (finished.empty()) finished = engine->Step(std::chrono::milliseconds(100));
    return finished[0].refused ? finished[0].refused->what() : "";
  };
  EXPECT_NE(refusal(true), "");
  EXPECT_EQ(refusal(true), refusal(false));
}

}  // namespace
}  // namespace evald::native::cuda

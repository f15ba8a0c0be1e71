// Requests at and beyond the limits.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "evald/error.h"
#include "native_test_util.h"

namespace evald::native {
namespace {

// Four ASCII bytes. The first two occur here for the first time.
bool IsPlain(const std::string& text, size_t at) {
  const std::string part = text.substr(at, 4);
  return std::all_of(part.begin(), part.end(), [](char c) { return c > 0; }) &&
         text.find(part.substr(0, 2)) == at;
}

class RequestTest : public testing::Test {
 protected:
  Generation One(const Request& request) { return AnswerAll(engine_.get(), {request}).at(0); }
  void ExpectError(Request request, const std::vector<std::string>& words) {
    request.doc_id = 5;
    const std::string message = SubmitError(engine_.get(), request);
    EXPECT_NE(message.find("document 5"), std::string::npos) << message;
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
    }
    EXPECT_EQ(engine_->pending(), 0u);
  }
  static Request Tokens(size_t context, size_t continuation, int max_gen_toks = 0) {
    Request request;
    request.kind = continuation > 0 ? RequestKind::kLoglikelihood : RequestKind::kGenerateUntil;
    for (size_t i = 0; i < context; ++i) request.context_tokens.push_back(2 + i * 31 % 300);
    for (size_t i = 0; i < continuation; ++i)
      request.continuation_tokens.push_back(2 + i * 7 % 300);
    request.sampling.max_gen_toks = max_gen_toks;
    return request;
  }

  std::unique_ptr<Engine> engine_ = LoadedEngine(GoldenPath("linear"));  // context of 256 tokens
};

TEST_F(RequestTest, PromptWithoutTokens) {
  ExpectError(GenerateRequest("", {}, 10), {"no tokens"});
  ExpectError(ScoreRequest("x", ""), {"no tokens"});
}

TEST_F(RequestTest, ExactContextLengthAndOneMore) {
  Generation g = One(Tokens(246, 0, 10));
  EXPECT_EQ(g.tokens_in, 246);
  EXPECT_EQ(g.truncated, 0);
  g = One(Tokens(247, 0, 10));
  EXPECT_EQ(g.tokens_in, 246);
  EXPECT_EQ(g.truncated, 1);
  // A scored sequence may have one token more, since its last token is not an input.
  EXPECT_EQ(One(Tokens(250, 7)).truncated, 0);
  g = One(Tokens(251, 7));
  EXPECT_EQ(g.truncated, 1);
  EXPECT_EQ(g.tokens_in, 250);
  EXPECT_EQ(g.tokens_out, 7);
  EXPECT_EQ(One(Tokens(3, 256)).truncated, 2);
  ExpectError(Tokens(3, 257), {"257", "256"});
}

TEST_F(RequestTest, TruncationKeepsTheEnd) {
  Request all = Tokens(300, 4), end = all;
  end.context_tokens.erase(end.context_tokens.begin(), end.context_tokens.end() - 253);
  EXPECT_EQ(One(all).loglikelihood, One(end).loglikelihood);
  EXPECT_EQ(One(all).truncated, 47);
}

TEST_F(RequestTest, MaxGenToks) {
  ExpectError(Tokens(10, 0, 0), {"max_gen_toks", "0"});
  ExpectError(Tokens(10, 0, -3), {"max_gen_toks", "-3"});
  ExpectError(Tokens(10, 0, 256), {"max_gen_toks (256)", "context length (256)"});
  const Generation g = One(Tokens(10, 0, 255));
  EXPECT_EQ(g.tokens_in, 1);
  EXPECT_EQ(g.truncated, 9);
}

// The tokenizer adds a BOS token that its vocabulary lacks, with an id for which the weights have
// no row.
TEST_F(RequestTest, ABeginningOutsideTheVocabulary) {
  const CheckpointCopy copy("linear");
  WriteFileAtomic(copy.path() / "tokenizer_config.json", R"({"bos_token": "<new>"})");
  engine_ = LoadedEngine(copy.path());
  Request request = Tokens(5, 0, 0);
  request.kind = RequestKind::kLoglikelihoodRolling;
  ExpectError(request, {"BOS", "id 320, expected 0 to 319", "bos_token"});
}

TEST_F(RequestTest, TokensOutsideTheVocabulary) {
  Request request = Tokens(5, 0, 4);
  request.context_tokens[2] = 320;
  ExpectError(request, {"320", "319"});
  request.context_tokens[2] = -1;
  ExpectError(request, {"-1"});
}

TEST_F(RequestTest, SamplingParameters) {
  Request request = Tokens(5, 0, 4);
  request.sampling.do_sample = true;
  request.sampling.settings["temperature"] = 0;
  ExpectError(request, {"temperature"});
  request.sampling.settings["temperature"] = 1;
  request.sampling.settings["top_p"] = -0.5;
  ExpectError(request, {"top_p"});
  request.sampling.settings["top_p"] = 1;
  request.sampling.settings["top_k"] = -1;
  ExpectError(request, {"top_k"});
}

// As in the harness: an empty stop string is found at once and cuts nothing.
TEST_F(RequestTest, EmptyStop) {
  const Generation g = One(GenerateRequest("The answer is", {""}, 20));
  EXPECT_EQ(g.tokens_out, 1);
  EXPECT_EQ(g.finish, FinishReason::kStop);
}

TEST_F(RequestTest, StopThatIsAPrefixOfAnother) {
  const std::string text = One(GenerateRequest("#### 17", {}, 30)).text;
  size_t at = 6;
  while (at + 4 < text.size() && !IsPlain(text, at)) ++at;
  ASSERT_LT(at + 4, text.size());
  const std::string shorter = text.substr(at, 2), longer = text.substr(at, 4);
  for (const auto& until :
       {std::vector<std::string>{shorter, longer}, std::vector<std::string>{longer, shorter}}) {
    const Generation g = One(GenerateRequest("#### 17", until, 30));
    EXPECT_EQ(g.text, text.substr(0, text.find(shorter)));
    EXPECT_EQ(g.finish, FinishReason::kStop);
  }
}

TEST_F(RequestTest, CacheTooSmallForOne) {
  const uint64_t page = PageLayout(ReadModelConfig(GoldenPath("linear"))).bytes();
  engine_ = LoadedEngine(GoldenPath("linear"), {{"kv_cache", 2 * page}});
  EXPECT_EQ(One(Tokens(100, 0, 29)).tokens_out, 29);  // 128 positions
  ExpectError(Tokens(100, 0, 30), {"kv_cache"});
  ExpectError(Tokens(130, 1), {"kv_cache"});
}

TEST_F(RequestTest, SettingsThatThisEngineDoesNotApply) {
  CheckpointCopy copy("linear");
  copy.Write("generation_config.json",
             "{\"eos_token_id\": 1, \"num_beams\": 3, \"no_repeat_ngram_size\": 0}");
  engine_ = LoadedEngine(copy.path());
  ExpectError(GenerateRequest("x", {}, 5),
              {"generation_config.json: num_beams: 3 is not served", "generation_config: ignore"});
  EXPECT_LT(One(ScoreRequest("a", " b")).loglikelihood, 0) << "scoring does not need it";
}

TEST_F(RequestTest, CancelAndGoOn) {
  for (uint64_t tag = 0; tag < 5; ++tag) engine_->Submit(tag, Tokens(100, 0, 100));
  engine_->Step(std::chrono::milliseconds(0));
  EXPECT_EQ(engine_->pending(), 5u);
  engine_->CancelAll();
  EXPECT_EQ(engine_->pending(), 0u);
  EXPECT_TRUE(engine_->Step(std::chrono::milliseconds(10)).empty());
  EXPECT_EQ(One(Tokens(100, 0, 3)).tokens_out, 3);
}

TEST_F(RequestTest, StepKeepsItsBudget) {
  for (uint64_t tag = 0; tag < 32; ++tag) engine_->Submit(tag, Tokens(150, 0, 100));
  EXPECT_TRUE(engine_->Step(std::chrono::milliseconds(1)).empty());
  EXPECT_EQ(engine_->pending(), 32u) << "it stayed until something had ended";
}

}  // namespace
}  // namespace evald::native

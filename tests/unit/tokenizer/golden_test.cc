// Every line that tests/oracle/tokenizer_golden.py wrote, against transformers' fast tokenizers and
// lm-evaluation-harness's own encoding of requests.
#include <thread>

#include "fixture.h"

namespace evald {
namespace {

class Golden : public testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder_ = GoldenFolder() / GetParam();
  std::unique_ptr<Tokenizer> tokenizer_ = Tokenizer::Load(folder_);
};

TEST_P(Golden, EncodesAndDecodesText) {
  size_t lines = 0;
  ForEachJsonLine(folder_ / "golden.jsonl", [&](size_t number, const Json& line) {
    SCOPED_TRACE(number);
    const std::string text = line["text"];
    const Ids ids = line["ids"];
    const Ids special = line.value("special", ids);
    const std::string decoded = line.value("decoded", text);
    EXPECT_EQ(tokenizer_->Encode(text, false), ids);
    EXPECT_EQ(tokenizer_->Encode(text, true), special);
    EXPECT_EQ(tokenizer_->Decode(special, false), decoded);
    EXPECT_EQ(tokenizer_->Decode(special, true), line.value("skipped", decoded));
    ++lines;
  });
  EXPECT_GE(lines, 75u);
}

TEST_P(Golden, DecodesAnyIds) {
  size_t lines = 0;
  ForEachJsonLine(folder_ / "decode.jsonl", [&](size_t number, const Json& line) {
    SCOPED_TRACE(number);
    EXPECT_EQ(tokenizer_->Decode(line["ids"], false), line["decoded"].get<std::string>());
    EXPECT_EQ(tokenizer_->Decode(line["ids"], true), line["skipped"].get<std::string>());
    ++lines;
  });
  EXPECT_GE(lines, 40u);
}

RequestKind KindOf(const std::string& name) {
  return name == "generate_until"  ? RequestKind::kGenerateUntil
         : name == "loglikelihood" ? RequestKind::kLoglikelihood
                                   : RequestKind::kLoglikelihoodRolling;
}

TEST_P(Golden, EncodesRequestsAsTheHarnessDoes) {
  size_t lines = 0;
  ForEachJsonLine(folder_ / "requests.jsonl", [&](size_t number, const Json& line) {
    SCOPED_TRACE(number);
    Request request;
    request.kind = KindOf(line["kind"]);
    request.context = line["context"];
    request.continuation = line.value("continuation", "");
    ++lines;
    if (line.contains("error")) {
      EXPECT_THROW(EncodeRequest(*tokenizer_, &request), Error);
      return;
    }
    EncodeRequest(*tokenizer_, &request);
    EXPECT_EQ(request.context_tokens, line["context_tokens"].get<Ids>());
    EXPECT_EQ(request.continuation_tokens, line.value("continuation_tokens", Ids()));
  });
  EXPECT_GE(lines, 20u);
}

TEST_P(Golden, ThreadsAgree) {
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  ForEachJsonLine(folder_ / "golden.jsonl", [&](size_t, const Json& line) {
    texts.push_back(line["text"]);
    expected.push_back(line["ids"]);
  });
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (size_t t = 0; t < texts.size(); ++t) {
        EXPECT_EQ(tokenizer_->Encode(texts[t], false), expected[t]);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Golden,
                         testing::Values("gpt2", "llama3", "qwen2", "llama2_legacy",
                                         "llama2_metaspace", "metaspace_digits", "neox", "suffixed",
                                         "fused", "mistral_tekken", "qwen3", "olmo2", "internlm2",
                                         "gemma", "deepseek", "deepseek_coder", "falcon",
                                         "starcoder", "bloom", "punctuated"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace evald

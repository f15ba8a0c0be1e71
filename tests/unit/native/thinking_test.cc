// Thinking, against lm_eval 0.4.13 (tests/oracle/thinking_golden.py).
#include "worker/engine/thinking.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "native_test_util.h"
#include "tests/unit/support/caught.h"
#include "tokenizer/tokenizer.h"

namespace evald::native {
namespace {

using testing::HasSubstr;
constexpr const char* kThinker = "linear";

Json ThinkingCases(const std::string& kind) {
  const std::string path = EVALD_SOURCE_DIR "/tests/golden/thinking/cases.json";
  return ParseJson(ReadFile(path), path).at(kind);
}

ThinkEnd EndOf(const Json& item) { return ParseThinkEnd(item.at("think_end_token")).value(); }

std::vector<std::string> UntilOf(const Json& item) {
  return item.at("until").get<std::vector<std::string>>();
}

std::unique_ptr<Tokenizer> GoldenTokenizer() { return Tokenizer::Load(GoldenPath(kThinker)); }

Generation Answered(SplitText split, const std::vector<std::string>& until, FinishReason reason,
                    const std::string& eos = "") {
  Generation generation;
  SetAnswer(std::move(split), until, eos, reason, &generation);
  return generation;
}

TEST(ThinkingGolden, Texts) {
  int thought = 0, cut = 0;
  const Json cases = ThinkingCases("texts");
  for (const Json& item : cases) {
    const auto text = item.at("text").get<std::string>();
    const SplitText split = ThinkingEnd(EndOf(item), nullptr).OfText(text);
    EXPECT_EQ(split.ended ? split.thinking + split.answer : text, text);
    const Generation answer = Answered(split, UntilOf(item), FinishReason::kEos);
    EXPECT_EQ(answer.text, item.at("answer").get<std::string>()) << item;
    thought += split.ended ? 1 : 0;
    cut += answer.finish == FinishReason::kStop ? 1 : 0;
  }
  EXPECT_GT(cases.size(), 1000U);
  EXPECT_GT(thought, 200);
  EXPECT_GT(cut, 200);
}

TEST(ThinkingGolden, Tokens) {
  const auto tokenizer = GoldenTokenizer();
  const std::string eos = tokenizer->Decode({tokenizer->eos_id()}, false);
  int thought = 0;
  const Json cases = ThinkingCases("tokens");
  for (const Json& item : cases) {
    const SplitText split = ThinkingEnd(EndOf(item), tokenizer.get())
                                .OfTokens(item.at("tokens").get<std::vector<int32_t>>());
    const Generation answer = Answered(split, UntilOf(item), FinishReason::kEos, eos);
    EXPECT_EQ(answer.text, item.at("answer").get<std::string>()) << item;
    thought += split.ended ? 1 : 0;
  }
  EXPECT_GT(cases.size(), 200U);
  EXPECT_GT(thought, 100);
}

// The model says a stop string in its thinking, and goes on.
TEST(ThinkingGolden, AnswersOfTheEngine) {
  const auto engine = LoadedEngine(GoldenPath(kThinker));
  std::vector<Request> requests;
  const Json cases = ThinkingCases("engine");
  for (const Json& item : cases) {
    requests.push_back(GenerateRequest(item.at("context").get<std::string>(), UntilOf(item),
                                       item.at("max_gen_toks").get<int>()));
    requests.back().doc_id = static_cast<int64_t>(requests.size());
    requests.back().sampling.think_end = EndOf(item);
  }
  const std::vector<Generation> answers = AnswerAll(engine.get(), requests);
  int thought = 0, stopped = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].text, cases[i].at("answer").get<std::string>()) << cases[i];
    thought += answers[i].thinking.empty() ? 0 : 1;
    stopped += answers[i].finish == FinishReason::kStop ? 1 : 0;
    EXPECT_FALSE(answers[i].thinking.empty() && answers[i].finish == FinishReason::kStop);
  }
  EXPECT_GT(thought, 20);
  EXPECT_GT(stopped, 5);
}

TEST(Thinking, SaysWhyItEnded) {
  const ThinkingEnd end({"</t>", -1}, nullptr);
  using enum FinishReason;
  const auto finish = [&](const std::string& text, FinishReason reason) {
    return Answered(end.OfText(text), {"\n"}, reason).finish;
  };
  EXPECT_EQ(finish("a\nb</t> c", kEos), kEos) << "the stop string stands in the thinking";
  EXPECT_EQ(finish("a</t> c\nd", kEos), kStop);
  EXPECT_EQ(finish("a</t> c\nd", kLength), kStop) << "the answer had come to its end";
  EXPECT_EQ(finish("a</t> c", kLength), kLength);
  EXPECT_EQ(finish("a\nb", kLength), kLength) << "thinking that never ended is truncated";
  EXPECT_EQ(finish("a\nb", kEos), kStop) << "an answer without thinking";
  EXPECT_EQ(finish("a</t>\n\nb", kEos), kEos) << "white space behind the thinking is no answer";
}

TEST(Thinking, TheEosTextCutsButIsNoStopString) {
  const ThinkingEnd end({"</t>", -1}, nullptr);
  const Generation answer = Answered(end.OfText("a</t>b</s>"), {"\n"}, FinishReason::kEos, "</s>");
  EXPECT_EQ(answer.text, "b");
  EXPECT_EQ(answer.thinking, "a</t>");
  EXPECT_EQ(answer.finish, FinishReason::kEos);
}

// Decoded texts leave special tokens out, so a special token is found by its id.
TEST(Thinking, TheTextOfASpecialTokenIsTheToken) {
  const auto tokenizer = GoldenTokenizer();
  const int32_t special = tokenizer->bos_id();
  const std::string spelling = tokenizer->Spelling(special);
  ASSERT_EQ(tokenizer->Decode({special}, true), "");
  std::vector<int32_t> tokens = tokenizer->Encode("so", false);
  const size_t thinking = tokens.size();
  tokens.push_back(special);
  for (const int32_t token : tokenizer->Encode(" 42", false)) tokens.push_back(token);
  for (const ThinkEnd& end : {ThinkEnd{spelling, -1}, ThinkEnd{"", special}}) {
    const ThinkingEnd known(end, tokenizer.get());
    EXPECT_TRUE(known.special());
    const SplitText split = known.OfTokens(tokens);
    EXPECT_EQ(split.answer, "42");
    EXPECT_EQ(split.thinking, "so" + spelling + " ");
    EXPECT_EQ(known.OfText("so" + spelling + " 42").answer, "42");
  }
  EXPECT_FALSE(ThinkingEnd({"", tokens[thinking - 1]}, tokenizer.get()).special());
  EXPECT_FALSE(ThinkingEnd({"so", -1}, tokenizer.get()).special());
}

TEST(Thinking, RefusesAnIdThatIsNoToken) {
  const auto tokenizer = GoldenTokenizer();
  const int32_t beyond = tokenizer->vocabulary_size();
  EXPECT_THAT(RefusalOf([&] { ThinkingEnd({"", beyond}, tokenizer.get()); }),
              HasSubstr(fmt::format("think_end_token: the tokenizer has no token {}; its ids go "
                                    "from 0 to {}",
                                    beyond, beyond - 1)));
  EXPECT_THAT(RefusalOf([] { ThinkingEnd({"", 7}, nullptr); }),
              HasSubstr("think_end_token is the id 7, but evald has no tokenizer"));
  const auto engine = LoadedEngine(GoldenPath(kThinker));
  Request request = GenerateRequest("x", {}, 4);
  request.sampling.think_end.token = beyond;
  EXPECT_THAT(SubmitError(engine.get(), request), HasSubstr("think_end_token"));
}

// An empty stop string ends a plain generation after one token. In thinking it means nothing.
TEST(Thinking, EmptyStopStringsEndNothing) {
  const auto engine = LoadedEngine(GoldenPath(kThinker));
  Request plain = GenerateRequest("The answer is", {""}, 8);
  Request thinking = plain;
  thinking.doc_id = 1;
  thinking.sampling.think_end.text = "never said";
  const auto answers = AnswerAll(engine.get(), {plain, thinking});
  EXPECT_EQ(answers[0].tokens_out, 1);
  EXPECT_EQ(answers[1].tokens_out, 8);
  EXPECT_EQ(answers[1].finish, FinishReason::kLength);
}

TEST(ParseThinkEnd, TextsAndIds) {
  EXPECT_EQ(ParseThinkEnd("</think>"), (ThinkEnd{"</think>", -1}));
  EXPECT_EQ(ParseThinkEnd(151668), (ThinkEnd{"", 151668}));
  EXPECT_EQ(ParseThinkEnd("151668"), (ThinkEnd{"", 151668}));
  EXPECT_EQ(ParseThinkEnd("0"), (ThinkEnd{"", 0}));
  EXPECT_EQ(ParseThinkEnd("007"), (ThinkEnd{"", 7}));
  EXPECT_EQ(ParseThinkEnd("-1"), (ThinkEnd{"-1", -1}));
  for (const Json& bad :
       {Json(""), Json(), Json(true), Json(-1), Json(1.5), Json(2147483648), Json("99999999999"),
        Json(UINT64_MAX), Json::array({"</think>"}), Json::object()}) {
    EXPECT_EQ(ParseThinkEnd(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ToJson(ThinkEnd{"x", -1}), "x");
  EXPECT_EQ(ToJson(ThinkEnd{"", 0}), 0);
  EXPECT_TRUE(ToJson(ThinkEnd()).is_null());
}

}  // namespace
}  // namespace evald::native

#include "worker/server/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"
#include "worker/server/plan.h"

namespace evald::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Request Question() {
  Request request;
  request.task = "t";
  request.context = "Q: 1+1?\nA:";
  request.context_tokens = {1, 2, 3};
  request.sampling.until = {"\n", "Q:", "a", "b", "c"};
  request.sampling.max_gen_toks = 32;
  return request;
}

std::string Reply(const std::string& choice) { return "{\"choices\":[" + choice + "]}"; }

TEST(GenerateBody, GreedyWithAsManyStopsAsTheApiTakes) {
  CompletionsStyle style;
  style.model = "m";
  const Json body = GenerateBody(style, Question());
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["prompt"], "Q: 1+1?\nA:");
  EXPECT_EQ(body["max_tokens"], 32);
  EXPECT_EQ(body["temperature"], 0.0);
  EXPECT_FALSE(body.contains("top_p"));
  EXPECT_EQ(body["stop"], (Json{"\n", "Q:", "a", "b"}));
  style.stops_max = 0;
  style.tokens = true;
  style.send_seed = false;
  style.extra = {{"min_p", 0.1}, {"temperature", 0.5}};
  const Json other = GenerateBody(style, Question());
  EXPECT_EQ(other["prompt"], (Json{1, 2, 3}));
  EXPECT_FALSE(other.contains("stop"));
  EXPECT_FALSE(other.contains("seed"));
  EXPECT_EQ(other["min_p"], 0.1);
  EXPECT_EQ(other["temperature"], 0.5);
}

TEST(GenerateBody, SamplesWithASeedOfItsOwn) {
  CompletionsStyle style;
  Request request = Question();
  request.sampling.do_sample = true;
  request.sampling.settings["temperature"] = 0.8;
  request.sampling.settings["top_p"] = 0.95;
  request.sampling.settings["top_k"] = 50;
  const Json body = GenerateBody(style, request);
  EXPECT_EQ(body["temperature"], 0.8);
  EXPECT_EQ(body["top_p"], 0.95);
  EXPECT_EQ(body["top_k"], 50);
  EXPECT_EQ(GenerateBody(style, request)["seed"], body["seed"]);
  request.repeat = 1;
  EXPECT_NE(GenerateBody(style, request)["seed"], body["seed"]);
  EXPECT_LT(body["seed"].get<int64_t>(), int64_t{1} << 31);
}

// The checkpoint's settings, under the names that servers know.
TEST(GenerateBody, PassesTheCheckpointsSettingsOn) {
  const TemporaryFolder folder;
  WriteFileAtomic(
      folder.path() / "generation_config.json",
      R"({"eos_token_id": 1, "repetition_penalty": 1.05, "top_k": 20, "min_p": 0.1, "temperature": 0.7,
                      "min_new_tokens": 3, "max_new_tokens": 900})");
  CompletionsStyle style;
  style.generation = GenerationConfig::Read(folder.path(), GenerationConfig::Use::kCheckpoint);
  style.max_length = 400;
  Request request = Question();
  const Json greedy = GenerateBody(style, request, 100);
  EXPECT_EQ(greedy["repetition_penalty"], 1.05);
  EXPECT_EQ(greedy["min_tokens"], 3);
  EXPECT_EQ(greedy["max_tokens"], 300) << "to the end of the context";
  EXPECT_EQ(greedy["temperature"], 0.0);
  EXPECT_FALSE(greedy.contains("top_k"));
  request.sampling.do_sample = true;
  const Json sampled = GenerateBody(style, request);
  EXPECT_EQ(sampled["max_tokens"], 900);
  EXPECT_EQ(sampled["temperature"], 0.7);
  EXPECT_EQ(sampled["top_k"], 20);
  EXPECT_EQ(sampled["min_p"], 0.1);
  style.generation = GenerationConfig::Read(folder.path(), GenerationConfig::Use::kIgnore);
  const Json ignored = GenerateBody(style, request);
  for (const char* key : {"repetition_penalty", "top_k", "min_p", "min_tokens"})
    EXPECT_FALSE(ignored.contains(key)) << key;
  EXPECT_EQ(ignored["temperature"], 1.0);
}

TEST(GenerateBody, RefusesWhatServersHaveNoNameFor) {
  CompletionsStyle style;
  Request request = Question();
  request.sampling.settings = {{"no_repeat_ngram_size", 3}};
  EXPECT_THROW(GenerateBody(style, request), Error);
  style.extra = {{"no_repeat_ngram_size", 3}};  // the user gives this server's name of the setting
  EXPECT_EQ(GenerateBody(style, request)["no_repeat_ngram_size"], 3);
}

TEST(GenerateBody, LengthsAsTheHarnessHasThem) {
  CompletionsStyle style;
  Request request = Question();
  request.sampling.settings = {{"max_length", 30}};
  EXPECT_EQ(GenerateBody(style, request, 10)["max_tokens"], 20);
  EXPECT_THROW(GenerateBody(style, request, 30), Error);
  EXPECT_THROW(GenerateBody(style, request), Error) << "the prompt's tokens are not known";
  request.sampling.settings = Json::object();
  request.sampling.until = {"", "x"};
  EXPECT_EQ(GenerateBody(style, request)["max_tokens"], 1) << "an empty stop string";
}

TEST(ParseCompletion, ReadsWhatServersWrite) {
  const Completion plain = ParseCompletion(Reply(R"({"text":" two","finish_reason":"stop"})"));
  EXPECT_EQ(plain.text, " two");
  EXPECT_EQ(plain.prompt_tokens, -1);
  EXPECT_FALSE(plain.ended_by_eos);
  const Completion eos = ParseCompletion(
      Reply(R"({"text":"","finish_reason":"stop","stop_reason":null,"logprobs":null})"));
  EXPECT_TRUE(eos.ended_by_eos);
  const Completion scored = ParseCompletion(Reply(
      R"({"text":"ab","logprobs":{"token_logprobs":[null,-0.5],"top_logprobs":[null,{"b":-0.5,"c":-0.25}]}})"));
  ASSERT_EQ(scored.tokens.size(), 2u);
  EXPECT_TRUE(std::isnan(scored.tokens[0].logprob));
  EXPECT_EQ(scored.tokens[1].logprob, -0.5);
  EXPECT_EQ(scored.tokens[1].best, -0.25);
}

TEST(ParseCompletion, AnAnswerThatTheServerGaveUpIsNone) {
  for (const char* reason : {R"("abort")", R"("content_filter")", "null", "5", R"("")"}) {
    const std::string choice = std::string(R"({"text":"","finish_reason":)") + reason + "}";
    EXPECT_THAT(CaughtText([&] { ParseCompletion(Reply(choice)); }, ErrorKind::kInfrastructure),
                HasSubstr(std::string("its finish_reason is ") + reason));
  }
  for (const char* choices : {R"({"text":"a"},{"text":"b"})", R"({"text":"a","index":7})"}) {
    EXPECT_THAT(CaughtText([&] { ParseCompletion(Reply(choices)); }, ErrorKind::kInfrastructure),
                HasSubstr("expected one"));
  }
  EXPECT_THAT(
      CaughtText(
          [] { ParseCompletion(R"({"error":{"message":"half"},"choices":[{"text":"a"}]})"); },
          ErrorKind::kInfrastructure),
      HasSubstr("has an error: half"));
  EXPECT_EQ(ParseCompletion(R"({"error":null,"choices":[{"text":"a"}]})").text, "a");
  EXPECT_EQ(ParseCompletion(Reply(R"({"text":"a","finish_reason":"eos_token"})")).text, "a");
  EXPECT_EQ(ParseCompletion(Reply(R"({"text":"a"})")).text, "a") << "the server gives no reason";
}

TEST(ParseAnswer, AnAnswerSaysThatItIsCompleteAndOfTheSameModel) {
  CompletionsStyle style;
  style.reply_model = "a";
  const std::string choices = R"("choices":[{"text":"x","finish_reason":"length"}])";
  EXPECT_EQ(ParseAnswer(R"({"model":"a",)" + choices + "}", style).text, "x");
  EXPECT_EQ(ParseAnswer("{" + choices + "}", style).text, "x") << "the server does not say";
  EXPECT_THAT(CaughtText([&] { ParseAnswer(R"({"model":"b",)" + choices + "}", style); },
                         ErrorKind::kInfrastructure),
              HasSubstr("of the model 'b', its first reply was of 'a'"));
  EXPECT_THAT(
      CaughtText([&] { ParseAnswer(Reply(R"({"text":"x"})"), style); }, ErrorKind::kInfrastructure),
      HasSubstr("no finish_reason"));
}

TEST(ParseCompletion, InvalidTextIsReplaced) {
  EXPECT_EQ(ParseCompletion(Reply("{\"text\":\"a\xFF\"}")).text, "a\xEF\xBF\xBD");
  EXPECT_EQ(ParseCompletion(Reply(R"({"text":"\ud83d!\udc00 \\ud83d \ud83d\ude00"})")).text,
            "\xEF\xBF\xBD!\xEF\xBF\xBD \\ud83d \xF0\x9F\x98\x80");
}

TEST(ParseCompletion, WhatIsNoReplyMayBeTriedAgain) {
  for (const char* body : {"", "<html>busy</html>", "{", "{}", "[]", R"({"choices":[]})",
                           R"({"choices":[{}]})", R"({"choices":[{"text":5}]})",
                           R"({"choices":[{"text":"","logprobs":{"token_logprobs":5}}]})",
                           R"({"choices":[{"text":"\u12"}]})", R"({"choices":[{"text":"\)"}) {
    const Error e = Caught([&] { ParseCompletion(body); });
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
  }
}

TEST(ErrorText, FindsTheMessage) {
  EXPECT_EQ(ErrorText(R"({"error":{"message":"too long","code":400}})"), "too long");
  EXPECT_EQ(ErrorText(R"({"error":"no such model"})"), "no such model");
  EXPECT_EQ(ErrorText(R"({"detail":[{"loc":["body"]}]})"), R"([{"loc":["body"]}])");
  EXPECT_EQ(ErrorText("<html>\n503</html>"), "<html> 503</html>");
  EXPECT_LE(ErrorText(std::string(1 << 20, 'x')).size(), 300u);
}

TEST(CutAtStop, TheFirstInTheTextCounts) {
  std::string text = "one\ntwo Q: three";
  EXPECT_TRUE(CutAtStop({"Q:", "\n", ""}, &text));
  EXPECT_EQ(text, "one");
  EXPECT_FALSE(CutAtStop({"zzz"}, &text));
  EXPECT_EQ(text, "one");
}

TEST(GenerateBody, SendsNoStopStringsIfTheModelThinks) {
  Request request = Question();
  request.sampling.until.push_back("");
  EXPECT_EQ(GenerateBody({}, request)["max_tokens"], 1) << "an empty stop string ends it at once";
  request.sampling.think_end.text = "</think>";
  const Json body = GenerateBody({}, request);
  EXPECT_FALSE(body.contains("stop"));
  EXPECT_EQ(body["max_tokens"], 32);
}

TEST(GenerationOf, SplitsTheThinkingFromTheServersText) {
  const ThinkingEnd end({"</think>", -1}, nullptr);
  const auto answer = [&](Completion completion) {
    return GenerationOf(Question(), std::move(completion), nullptr, {}, &end);
  };
  const Generation stopped = answer({"one\ntwo</think>\n\n 42\nQ:", "stop", true, 3, 9, {}});
  EXPECT_EQ(stopped.text, "42");
  EXPECT_EQ(stopped.thinking, "one\ntwo</think>\n\n ");
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  EXPECT_EQ(stopped.tokens_out, 9);
  EXPECT_EQ(answer({"one\ntwo</think>42", "stop", true, 3, 9, {}}).finish, FinishReason::kEos);
  const Generation unfinished = answer({"one\ntwo", "length", false, 3, 9, {}});
  EXPECT_EQ(unfinished.finish, FinishReason::kLength);
  EXPECT_EQ(unfinished.text, "one");
  EXPECT_EQ(unfinished.thinking, "");
}

// An end that is a special token stands in no text that a server decodes as usual.
TEST(PlanFor, AsksForSpecialTokensWhereTheyEndTheThinking) {
  const auto tokenizer =
      Tokenizer::Load(ReadFolder(EVALD_SOURCE_DIR "/tests/golden/native/linear"));
  const std::string special = tokenizer->Spelling(tokenizer->bos_id());
  PlanSetup setup;
  setup.tokenizer = tokenizer.get();
  const auto body = [&](const std::string& end) {
    Request request = Question();
    request.sampling.think_end = {end, -1};
    return ParseJson(PlanFor(setup, request).body, "body");
  };
  EXPECT_FALSE(body("</t>").contains("skip_special_tokens"));
  EXPECT_THAT(RefusalOf([&] { body(special); }),
              AllOf(HasSubstr("task 't', document 0: think_end_token is"),
                    HasSubstr("engine.extra_body: {skip_special_tokens: false}")));
  setup.style.extra = {{"skip_special_tokens", false}};
  EXPECT_EQ(body(special)["skip_special_tokens"], false);
  setup.style.extra = Json::object();
  setup.shows_special = true;
  EXPECT_EQ(body(special)["skip_special_tokens"], false);
  setup.extra = {{"return_token_ids", true}};
  EXPECT_FALSE(body(special).contains("skip_special_tokens")) << "tokens show every end";

  Request by_id = Question();
  by_id.sampling.think_end.token = 99999;
  EXPECT_THAT(RefusalOf([&] { PlanFor(setup, by_id); }), HasSubstr("has no token 99999"));
  setup.tokenizer = nullptr;
  EXPECT_THAT(RefusalOf([&] { PlanFor(setup, by_id); }), HasSubstr("evald has no tokenizer"));
}

TEST(GenerationOf, TheTokensOfTheReplyShowTheEnd) {
  const auto tokenizer =
      Tokenizer::Load(ReadFolder(EVALD_SOURCE_DIR "/tests/golden/native/linear"));
  const int32_t special = tokenizer->bos_id(), eos = tokenizer->eos_id();
  std::vector<int32_t> ids = tokenizer->Encode("a b", false);
  ids.push_back(special);
  for (const int32_t id : tokenizer->Encode(" 42", false)) ids.push_back(id);
  ids.push_back(eos);
  Completion completion{"not looked at", "stop", false, 3, 9, {}};
  completion.token_ids = ids;
  const ThinkingEnd end({"", special}, tokenizer.get());
  const Generation answer =
      GenerationOf(Question(), std::move(completion), tokenizer.get(), {eos}, &end);
  EXPECT_EQ(answer.text, "42");
  EXPECT_EQ(answer.finish, FinishReason::kEos) << "'a' and 'b' stand in the thinking";
  EXPECT_EQ(answer.thinking, "a b" + tokenizer->Spelling(special) + " ");
  EXPECT_EQ(answer.tokens_out, static_cast<int>(ids.size()));
}

TEST(GenerationOf, SaysWhyItEnded) {
  const auto finish = [](Completion completion) {
    return GenerationOf(Question(), std::move(completion)).finish;
  };
  EXPECT_EQ(finish({"x\ny", "length", false, 3, 9, {}}), FinishReason::kStop);
  EXPECT_EQ(finish({"x", "length", false, 3, 9, {}}), FinishReason::kLength);
  EXPECT_EQ(finish({"x", "stop", true, 3, 9, {}}), FinishReason::kEos);
  EXPECT_EQ(finish({"x", "stop", false, 3, 9, {}}), FinishReason::kStop);
  EXPECT_EQ(GenerationOf(Question(), {"x", "stop", false, -1, -1, {}}).tokens_in, 3);
}

}  // namespace
}  // namespace evald::server

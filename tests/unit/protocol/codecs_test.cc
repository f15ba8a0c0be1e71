#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/jsonl.h"
#include "evald/engine_info.h"
#include "evald/error.h"
#include "evald/generation.h"
#include "evald/request.h"
#include "evald/score.h"
#include "evald/task.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using testing::HasSubstr;

Generation Scored(double loglikelihood) {
  Generation generation;
  generation.doc_id = 5;
  generation.idx = 2;
  generation.kind = RequestKind::kLoglikelihood;
  generation.loglikelihood = loglikelihood;
  generation.is_greedy = true;
  generation.finish = FinishReason::kScored;
  generation.tokens_in = 100;
  generation.tokens_out = 3;
  return generation;
}

Generation ThereAndBack(const Generation& generation) {
  return GenerationFromJson(ParseJson(ToLine(ToJson(generation)), "line"), "line");
}

TEST(GenerationCodec, ThinkingIsKeptBesideTheAnswer) {
  Generation generation;
  generation.text = "42";
  EXPECT_FALSE(ToJson(generation).contains("thinking")) << "lines of other models stay as they are";
  generation.thinking = "So...</think>\n";
  const Generation back = GenerationFromJson(ToJson(generation), "here");
  EXPECT_EQ(back.thinking, generation.thinking);
  EXPECT_EQ(back.text, "42");
  EXPECT_FALSE(IsTruncatedAnswer(back));
  generation.finish = FinishReason::kLength;
  EXPECT_TRUE(IsTruncatedAnswer(generation));
  generation.kind = RequestKind::kLoglikelihood;
  EXPECT_FALSE(IsTruncatedAnswer(generation));
}

TEST(SamplingCodec, TheEndOfThinkingIsATextOrAnId) {
  SamplingParams sampling;
  EXPECT_FALSE(ToJson(sampling).contains("think_end_token"));
  for (const ThinkEnd& end : {ThinkEnd{"</think>", -1}, ThinkEnd{"", 0}, ThinkEnd{"", 151668}}) {
    sampling.think_end = end;
    EXPECT_EQ(SamplingFromJson(ToJson(sampling), "here").think_end, end);
  }
  EXPECT_THROW(SamplingFromJson({{"think_end_token", ""}}, "here"), Error);
  EXPECT_THROW(SamplingFromJson({{"think_end_token", nullptr}}, "here"), Error);
}

TEST(GenerationCodec, ATextKeepsItsLine) {
  Generation generation;
  generation.doc_id = 12;
  generation.repeat = 1;
  generation.text = "a \"quoted\"\nline \xF0\x9F\x98\x80";
  generation.finish = FinishReason::kEos;
  generation.tokens_in = 7;
  generation.tokens_out = 8;
  generation.truncated = 9;
  EXPECT_EQ(
      ToLine(ToJson(generation)),
      "{\"doc_id\":12,\"idx\":0,\"repeat\":1,\"text\":\"a \\\"quoted\\\"\\nline "
      "\xF0\x9F\x98\x80\",\"finish\":\"eos\",\"tokens_in\":7,\"tokens_out\":8,\"truncated\":9}");
  const Generation back = ThereAndBack(generation);
  EXPECT_EQ(back.text, generation.text);
  EXPECT_EQ(back.finish, FinishReason::kEos);
  EXPECT_EQ(back.truncated, 9);
}

TEST(GenerationCodec, EveryDoubleComesBackBitForBit) {
  uint64_t bits = 0x9E3779B97F4A7C15ull;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 6364136223846793005ull + 1442695040888963407ull;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(ThereAndBack(Scored(value)).loglikelihood, value);
  }
  for (const double value : {-0.1, -1e-320, -1.7976931348623157e308, -3.0, -0.30000000000000004}) {
    EXPECT_EQ(ThereAndBack(Scored(value)).loglikelihood, value);
  }
}

TEST(GenerationCodec, NumbersThatJsonHasNotAreText) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(ToLine(ToJson(Scored(-infinity))), HasSubstr("\"loglikelihood\":\"-inf\""));
  EXPECT_EQ(ThereAndBack(Scored(-infinity)).loglikelihood, -infinity);
  EXPECT_EQ(ThereAndBack(Scored(infinity)).loglikelihood, infinity);
  EXPECT_THAT(ToLine(ToJson(Scored(std::nan("")))), HasSubstr("\"loglikelihood\":\"nan\""));
  EXPECT_TRUE(std::isnan(ThereAndBack(Scored(std::nan(""))).loglikelihood));
  EXPECT_TRUE(IsUndefined(Scored(std::nan(""))));
  EXPECT_FALSE(IsUndefined(Scored(-infinity)));
  EXPECT_THAT(RefusalOf([] {
                GenerationFromJson(ParseJson(R"({"doc_id":0,"idx":0,"repeat":0,"loglikelihood":null,
                  "is_greedy":true,"tokens_in":1,"tokens_out":1,"truncated":0})",
                                             "x"),
                                   "file:3");
              }),
              HasSubstr("file:3: key 'loglikelihood'"));
}

// Lines of models whose numbers are finite are unchanged.
TEST(GenerationCodec, TokensChosenAmongNanAreCounted) {
  Generation generation;
  EXPECT_FALSE(ToJson(generation).contains("undefined"));
  EXPECT_FALSE(IsUndefined(ThereAndBack(generation)));
  generation.undefined = 3;
  EXPECT_EQ(ToJson(generation)["undefined"], 3);
  EXPECT_TRUE(IsUndefined(ThereAndBack(generation)));
}

TEST(GenerationCodec, WithoutIsGreedyItIsARollingOne) {
  Generation generation = Scored(-2.5);
  generation.kind = RequestKind::kLoglikelihoodRolling;
  EXPECT_EQ(ToJson(generation).contains("is_greedy"), false);
  EXPECT_EQ(ThereAndBack(generation).kind, RequestKind::kLoglikelihoodRolling);
  EXPECT_EQ(ThereAndBack(Scored(-1)).kind, RequestKind::kLoglikelihood);
  EXPECT_TRUE(ThereAndBack(Scored(-1)).is_greedy);
}

TEST(GenerationCodec, AbsentAndWrongKeysAreNamed) {
  Json json = ToJson(Generation{});
  json["finish"] = "tired";
  EXPECT_THAT(RefusalOf([&] { GenerationFromJson(json, "f:1"); }), HasSubstr("found 'tired'"));
  for (const char* key : {"doc_id", "idx", "repeat", "text", "finish", "tokens_in", "truncated"}) {
    Json changed = ToJson(Generation{});
    changed.erase(key);
    EXPECT_THAT(RefusalOf([&] { GenerationFromJson(changed, "f:1"); }),
                HasSubstr(std::string("f:1: the key '") + key + "'"));
  }
  EXPECT_THAT(RefusalOf([] { GenerationFromJson(Json::array(), "f:1"); }), HasSubstr("f:1"));
}

TEST(SamplingCodec, DefaultsAndUnknownKeys) {
  SamplingParams sampling;
  sampling.until = {"\n\n", "Q:"};
  sampling.settings["temperature"] = 0.7;
  sampling.do_sample = true;
  sampling.settings["top_k"] = 40;
  const SamplingParams back = SamplingFromJson(ToJson(sampling), "x");
  EXPECT_EQ(back.until, sampling.until);
  EXPECT_EQ(back.settings, sampling.settings);
  EXPECT_TRUE(back.do_sample);
  EXPECT_EQ(SamplingFromJson(Json::object(), "x").max_gen_toks, 256);
  EXPECT_THAT(
      RefusalOf([] { SamplingFromJson(Json{{"do_sampel", true}}, "task 'a'"); }),
      HasSubstr("task 'a': unknown sampling parameter 'do_sampel'; did you mean 'do_sample'?"));
  EXPECT_THAT(RefusalOf([] { SamplingFromJson(Json{{"until", "x"}}, "y"); }), HasSubstr("a list"));
  EXPECT_THAT(RefusalOf([] { SamplingFromJson(Json{{"settings", 3}}, "y"); }),
              HasSubstr("an object"));
}

TEST(RequestKindNames, ThereAndBackAndUnknown) {
  for (const RequestKind kind : {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                                 RequestKind::kLoglikelihoodRolling}) {
    EXPECT_EQ(RequestKindFromString(ToString(kind)), kind);
  }
  EXPECT_THAT(RefusalOf([] { RequestKindFromString("multiple_choice"); }),
              HasSubstr("unknown request kind 'multiple_choice'"));
}

TEST(EngineInfoCodec, ThereAndBack) {
  EngineInfo info{"native", "0.1", {RequestKind::kLoglikelihood}, 4096, true, true, false, 16};
  const EngineInfo back = EngineInfoFromJson(ToJson(info), "x");
  EXPECT_EQ(ToLine(ToJson(back)), ToLine(ToJson(info)));
  for (const char* key : {"device_id", "driver", "fast"})
    EXPECT_FALSE(ToJson(info).contains(key)) << key;
  info.device_id = "cuda:GPU-a";
  info.driver = "driver 13.0";
  info.fast = true;
  const EngineInfo gpu = EngineInfoFromJson(ToJson(info), "x");
  EXPECT_EQ(gpu.device_id, "cuda:GPU-a");
  EXPECT_EQ(gpu.driver, "driver 13.0");
  EXPECT_TRUE(gpu.fast);
  Json wrong = ToJson(info);
  wrong["kinds"][0] = "dream";
  EXPECT_THAT(RefusalOf([&] { EngineInfoFromJson(wrong, "hello"); }), HasSubstr("hello: kinds"));
}

TEST(ScoreCodec, ThereAndBack) {
  ScoredDocument score;
  score.doc_id = 3;
  score.filters.push_back({"strict-match", Json{"72"}, Json{{"exact_match", 1.0}}});
  score.filters.push_back({"pass", Json{{1, "a"}}, Json{{"acc", {0, 1}}}, {}, {{"acc", "gA=="}}});
  score.detail = {{"0", "passed"}};
  score.judge = JudgeUsage{2, 300, 20, 1, 150, 10, 1};
  const std::string line = ToLine(ToJson(score));
  EXPECT_EQ(ToLine(ToJson(ScoreFromJson(ParseJson(line, "x"), "x"))), line);
  EXPECT_EQ(ScoreFromJson(ParseJson(line, "x"), "x").judge, score.judge);
  JudgeUsage sum = *score.judge;
  sum += *score.judge;
  EXPECT_EQ(sum, (JudgeUsage{4, 600, 40, 2, 300, 20, 2}));
  Json wrong = ToJson(score);
  for (const Json& tokens : {Json(-1), Json("1"), Json(INT64_MAX), Json()}) {
    wrong["judge"]["tokens_in"] = tokens;
    EXPECT_THAT(RefusalOf([&] { ScoreFromJson(wrong, "s:1"); }),
                HasSubstr("s:1: judge: key 'tokens_in'"));
  }
  wrong = ToJson(score);
  wrong["filters"][1]["metrics"] = 3;
  EXPECT_THAT(RefusalOf([&] { ScoreFromJson(wrong, "s:1"); }),
              HasSubstr("s:1: filters[1]: key 'metrics'"));
  wrong = ToJson(score);
  for (const Json& python : {Json{{"acc", 1}}, Json("text")}) {
    wrong["filters"][1]["python"] = python;
    EXPECT_THAT(RefusalOf([&] { ScoreFromJson(wrong, "s:1"); }),
                HasSubstr("s:1: filters[1]: key 'python'"));
  }
}

TaskDefinition SomeTask() {
  TaskDefinition task;
  task.name = "gsm8k";
  task.alias = "GSM8K";
  task.version = 3.0;
  task.output_type = "generate_until";
  task.repeats = 2;
  task.num_fewshot = 5;
  task.metrics = {{"exact_match", "", "mean", true, Json{{"ignore_case", true}}}};
  task.filters = {
      {"strict-match",
       {{"regex", Json{{"regex_pattern", "#### (.*)"}}}, {"take_first", Json::object()}}}};
  task.original_documents = 1319;
  task.effective_documents = 200;
  task.config = {{"task", "gsm8k"}};
  task.sources = {{"test", "hash"}};
  return task;
}

TEST(TaskCodec, ThereAndBack) {
  const std::string line = ToLine(ToJson(SomeTask()));
  EXPECT_EQ(ToLine(ToJson(TaskFromJson(ParseJson(line, "x"), "x"))), line);
  const Json whole = ToJson(SomeTask());
  for (const auto& [key, value] : whole.items()) {
    Json changed = whole;
    changed.erase(key);
    EXPECT_THAT(RefusalOf([&] { TaskFromJson(changed, "task.json"); }),
                HasSubstr("task.json: the key '" + key + "'"));
  }
  Json none = whole;
  none["repeats"] = 0;
  EXPECT_THAT(RefusalOf([&] { TaskFromJson(none, "t"); }), HasSubstr("expected at least 1"));
}

TEST(GroupCodec, ThereAndBack) {
  GroupDefinition group{
      "mmlu", "mmlu", 2, {"mmlu_stem", "mmlu_other"}, {{"acc", "mean", true, {"none"}}}};
  const std::string line = ToLine(ToJson(group));
  EXPECT_EQ(ToLine(ToJson(GroupFromJson(ParseJson(line, "x"), "x"))), line);
}

}  // namespace
}  // namespace evald

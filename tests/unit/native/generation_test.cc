// Generation settings against lm_eval's hf backend and transformers
// (tests/oracle/generation_golden.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/file.h"
#include "base/jsonl.h"
#include "datasets/task_config.h"
#include "evald/error.h"
#include "native_test_util.h"
#include "tests/unit/support/caught.h"
#include "worker/native/logits_processors.h"
#include "worker/native/sampler.h"

namespace evald::native {
namespace {

using testing::HasSubstr;
constexpr const char* kCheckpoint = "linear";
constexpr int64_t kVocab = 320;

std::filesystem::path Folder() {
  return std::filesystem::path(EVALD_SOURCE_DIR) / "tests/golden/generation";
}

Json Cases(const std::string& kind) {
  const std::string path = (Folder() / "cases.json").string();
  return ParseJson(ReadFile(path), path)[kind];
}

std::vector<float> Floats(const std::string& file) {
  const std::string bytes = ReadFile(Folder() / file);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A copy of the checkpoint with the case's generation_config.json and keys of config.json.
std::unique_ptr<CheckpointCopy> CopyFor(const Json& item) {
  auto copy = std::make_unique<CheckpointCopy>(kCheckpoint);
  std::filesystem::remove(copy->path() / "generation_config.json");
  const Json& generation = item.at("generation_config");
  if (!generation.is_null()) copy->Write("generation_config.json", generation.dump());
  for (const auto& [key, value] : item.at("config").items()) copy->SetConfig(key, value);
  return copy;
}

Request RequestOf(const Json& item) {
  Request request;
  request.context = item.at("context").get<std::string>();
  request.sampling = SamplingFromKwargs(item.at("generation_kwargs"), "golden");
  return request;
}

TEST(GenerationGolden, GreedyTexts) {
  std::string last;
  std::unique_ptr<Engine> engine;
  int checked = 0;
  for (const Json& item : Cases("greedy")) {
    const auto name = item.at("name").get<std::string>();
    if (name != last) {
      const auto copy = CopyFor(item);
      engine = LoadedEngine(copy->path());
      last = name;
    }
    const Generation answer = AnswerAll(engine.get(), {RequestOf(item)})[0];
    EXPECT_EQ(answer.text, item.at("text").get<std::string>()) << name;
    EXPECT_EQ(answer.tokens_out, static_cast<int>(item.at("generated").size())) << name;
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

// All requests at once. No request sees another's tokens or settings.
TEST(GenerationGolden, TextsDoNotDependOnTheBatch) {
  const Json cases = Cases("greedy");
  for (const std::string name : {"repetition", "ngrams", "together"}) {
    std::vector<Request> requests;
    std::vector<std::string> texts;
    std::unique_ptr<CheckpointCopy> copy;
    for (const Json& item : cases) {
      if (item.at("name") != name) continue;
      if (!copy) copy = CopyFor(item);
      for (int repeat = 0; repeat < 2; ++repeat) {
        requests.push_back(RequestOf(item));
        requests.back().doc_id = static_cast<int64_t>(requests.size());
        texts.push_back(item.at("text").get<std::string>());
      }
    }
    for (const Json& settings : {Json{{"chunk", 5}}, Json{{"concurrency", 3}}, Json::object()}) {
      const auto engine = LoadedEngine(copy->path(), settings, 2);
      const std::vector<Generation> answers = AnswerAll(engine.get(), requests);
      for (size_t i = 0; i < answers.size(); ++i)
        EXPECT_EQ(answers[i].text, texts[i]) << name << settings;
    }
  }
}

TEST(GenerationGolden, ProbabilitiesOfTheNextToken) {
  const std::vector<float> logits = Floats("logits.bin"), expected = Floats("probabilities.bin");
  ASSERT_EQ(logits.size(), expected.size());
  size_t draw = 0;
  for (const Json& item : Cases("sampled")) {
    const auto copy = CopyFor(item);
    const auto config = GenerationConfig::Read(copy->path(), GenerationConfig::Use::kCheckpoint);
    const SamplingParams sampling = SamplingFromKwargs(item.at("generation_kwargs"), "golden");
    const GenerationSettings settings = config.For(sampling);
    auto tokens = item.at("prompt").get<std::vector<int32_t>>();
    const size_t prompt = tokens.size();
    for (const Json& next : item.at("generated")) {
      const float* row = logits.data() + draw * kVocab;
      std::vector<float> scores(row, row + kVocab);
      ProcessLogits(settings,
                    {tokens, prompt, static_cast<int64_t>(prompt) + sampling.max_gen_toks},
                    &scores);
      const std::vector<double> masses = Masses(scores.data(), kVocab, settings);
      const double total = std::accumulate(masses.begin(), masses.end(), 0.0);
      for (size_t t = 0; t < masses.size(); ++t) {
        const double there = expected[draw * kVocab + t];
        ASSERT_EQ(masses[t] > 0, there > 0)
            << item.at("name") << " draw " << draw << " token " << t;
        ASSERT_NEAR(masses[t] / total, there, 1e-6)
            << item.at("name") << " draw " << draw << " token " << t;
      }
      tokens.push_back(next.get<int32_t>());
      ++draw;
    }
  }
  EXPECT_EQ(draw * kVocab, logits.size());
}

TEST(GenerationSettingsTest, UnknownKeysAreRefusedOnlyWhereTheyTakeEffect) {
  const auto settings = [](const char* text) {
    return GenerationConfig::Parse(Json::parse(text), "g.json: ", true,
                                   GenerationConfig::Use::kCheckpoint)
        .For({});
  };
  EXPECT_EQ(
      settings(
          R"({"repitition_penalty": 2.0, "generation_kwargs": {}, "return_legacy_cache": true})")
          .repetition_penalty,
      1);
  for (const char* text :
       {R"({"update": 1})", R"({"attention_mask": [1]})", R"({"_eos_token_tensor": 3})"}) {
    EXPECT_THROW(settings(text), Error) << text;
  }
}

TEST(GenerationSettingsTest, IgnoreLeavesOutAllButTheEndTokens) {
  CheckpointCopy copy(kCheckpoint);
  copy.Write(
      "generation_config.json",
      R"({"eos_token_id": [1, 83], "repetition_penalty": 1.5, "max_new_tokens": 3, "chat_format": "x"})");
  const auto config = GenerationConfig::Read(copy.path(), GenerationConfig::Use::kIgnore);
  SamplingParams sampling;
  sampling.do_sample = true;
  const GenerationSettings settings = config.For(sampling);
  EXPECT_EQ(settings.repetition_penalty, 1);
  EXPECT_EQ(settings.top_k, 0);
  EXPECT_FALSE(settings.max_new_tokens);
  EXPECT_EQ(settings.eos_ids, (std::vector<int32_t>{1, 83}));
  const auto engine = LoadedEngine(copy.path(), {{"generation_config", "ignore"}});
  EXPECT_EQ(AnswerAll(engine.get(), {GenerateRequest("The answer is", {}, 5)})[0].tokens_out, 5);
}

TEST(GenerationSettingsTest, RefusalsNameFileKeyAndRemedy) {
  const auto refusal = [](const std::string& json) {
    CheckpointCopy copy(kCheckpoint);
    copy.Write("generation_config.json", json);
    const auto config = GenerationConfig::Read(copy.path(), GenerationConfig::Use::kCheckpoint);
    SamplingParams sampling;
    sampling.do_sample = true;
    const std::string text = RefusalOf([&] { config.For(sampling); });
    if (!text.empty()) {
      EXPECT_THAT(text, HasSubstr("generation_config: ignore"));
    }
    return text;
  };
  EXPECT_THAT(refusal(R"({"num_beams": 4})"),
              HasSubstr("generation_config.json: num_beams: 4 is not served"));
  EXPECT_THAT(refusal(R"({"guidance_scale": 1.5})"), HasSubstr("guidance_scale"));
  EXPECT_THAT(refusal(R"({"stop_strings": ["a"]})"), HasSubstr("stop_strings"));
  EXPECT_THAT(refusal(R"({"cache_implementation": "quantized"})"), HasSubstr("quantized"));
  EXPECT_THAT(refusal(R"({"eos_token_id": [1, -1], "min_new_tokens": 3})"),
              HasSubstr("eos_token_id: found [1,-1]"));
  EXPECT_THAT(refusal(R"({"eos_token_id": -1, "min_length": 3})"),
              HasSubstr("eos_token_id: found -1"));
  EXPECT_THAT(refusal(R"({"repetition_penalty": 0})"),
              HasSubstr("repetition_penalty: found 0, expected a number above 0"));
  EXPECT_THAT(refusal(R"({"repetition_penalty": 2})"),
              HasSubstr("repetition_penalty: found 2, expected a number above 0"));
  EXPECT_EQ(
      refusal(
          R"({"repetition_penalty": 1, "eos_token_id": [], "suppress_tokens": [], "constraints": []})"),
      "");
  for (const char* key : {"bad_words_ids", "sequence_bias", "stop_strings"}) {
    EXPECT_THAT(refusal(Json{{key, Json::array()}}.dump()), HasSubstr(key)) << key;
  }
  EXPECT_THAT(refusal(R"({"pad_token_id": [1]})"),
              HasSubstr("pad_token_id: found [1], expected an integer or null"));
  EXPECT_THAT(refusal(R"({"return_dict_in_generate": true})"),
              HasSubstr("return_dict_in_generate: true is not served"));
  EXPECT_THAT(refusal(R"({"repetition_penalty": "1.1"})"), HasSubstr("repetition_penalty"));
  EXPECT_THAT(refusal(R"({"top_k": -1})"), HasSubstr("top_k: found -1"));
  EXPECT_THAT(refusal(R"({"top_k": 1.5})"), HasSubstr("top_k"));
  EXPECT_THAT(refusal(R"({"min_new_tokens": 9999999999})"), HasSubstr("min_new_tokens"));
  EXPECT_THAT(refusal(R"({"sequence_bias": [[3, 1.0]]})"), HasSubstr("sequence_bias"));
  EXPECT_THAT(refusal(R"({"bad_words_ids": [[]]})"), HasSubstr("bad_words_ids"));
  EXPECT_THAT(refusal(R"({"suppress_tokens": ["a"]})"), HasSubstr("suppress_tokens"));
  EXPECT_THAT(refusal(R"({"exponential_decay_length_penalty": [5]})"),
              HasSubstr("[tokens, factor]"));
  EXPECT_EQ(
      refusal(R"({"num_beams": 1, "guidance_scale": null, "cache_implementation": "static"})"), "");
}

TEST(GenerationSettingsTest, InForceSaysWhatActs) {
  CheckpointCopy copy(kCheckpoint);
  copy.Write(
      "generation_config.json",
      R"({"eos_token_id": 1, "repetition_penalty": 1.05, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "do_sample": true})");
  const auto config = GenerationConfig::Read(copy.path(), GenerationConfig::Use::kCheckpoint);
  SamplingParams sampling;
  EXPECT_EQ(config.InForce(sampling),
            (Json{{"do_sample", false}, {"eos_token_id", 1}, {"repetition_penalty", 1.05}}));
  sampling.do_sample = true;
  sampling.settings = {{"temperature", 0.3}, {"repetition_penalty", nullptr}};
  EXPECT_EQ(config.InForce(sampling), (Json{{"do_sample", true},
                                            {"eos_token_id", 1},
                                            {"temperature", 0.3},
                                            {"top_k", 20},
                                            {"top_p", 0.8}}));
  sampling.settings = Json::object();  // the checkpoint's own temperature
  EXPECT_EQ(config.For(sampling).temperature, 0.7);
  EXPECT_EQ(GenerationConfig().InForce(sampling),
            (Json{{"do_sample", true}, {"temperature", 1.0}, {"top_k", 50}, {"top_p", 1.0}}));
}

TEST(GenerationSettingsTest, EndTokens) {
  EXPECT_EQ(ParseEosIds({{"eos_token_id", 7}}, "c"), std::vector<int32_t>{7});
  EXPECT_EQ(ParseEosIds({{"eos_token_id", {7, 8}}}, "c"), (std::vector<int32_t>{7, 8}));
  EXPECT_TRUE(ParseEosIds({{"eos_token_id", nullptr}}, "c").empty());
  EXPECT_THROW(ParseEosIds({{"eos_token_id", "7"}}, "c"), Error);
}

TEST(GenerationSettingsTest, APromptThatFillsMaxLengthIsRefused) {
  const auto engine = LoadedEngine(GoldenPath(kCheckpoint));
  Request request = GenerateRequest("The answer is", {}, 5);
  request.sampling.settings["max_length"] = 2;
  EXPECT_THAT(SubmitError(engine.get(), request),
              HasSubstr("max_length in generation_kwargs is 2"));
}

TEST(ChooseTokenTest, NothingLeftToDrawIsAnError) {
  GenerationSettings settings;
  settings.suppressed = {0, 1};
  const std::vector<int32_t> tokens = {1};
  EXPECT_EQ(ChooseToken(settings, {tokens, 1, 4}, 0.5, {1.0f, 2.0f}), 0);  // as in torch.argmax
  settings.do_sample = true;
  EXPECT_THROW(ChooseToken(settings, {tokens, 1, 4}, 0.5, {1.0f, 2.0f}), Error);
}

}  // namespace
}  // namespace evald::native

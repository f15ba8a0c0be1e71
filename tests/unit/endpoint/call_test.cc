// Bodies of calls: what is read, and what is refused.
#include "worker/endpoint/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.h"
#include "worker/endpoint/tokenizer_calls.h"

namespace evald::endpoint::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CallTest : public ::testing::Test {
 protected:
  Call Completion(Json body) {
    if (!body.contains("prompt")) body["prompt"] = "def add";
    return ReadCompletionCall(body, model_);
  }
  Call Chat(Json body) {
    if (!body.contains("messages")) body["messages"] = {{{"role", "user"}, {"content", "hi"}}};
    return ReadChatCall(body, model_);
  }
  // The error of a completions call with this member.
  ApiError Refused(const std::string& key, const Json& value) {
    return ErrorOf([&] { Completion({{key, value}}); });
  }
  ApiError RefusedChat(const std::string& key, const Json& value) {
    return ErrorOf([&] { Chat({{key, value}}); });
  }
  std::string Decoded(const std::vector<int32_t>& tokens) {
    return model_.tokenizer->Decode(tokens, false);
  }

  ServedModel model_ = Model();
};

TEST_F(CallTest, APromptMayHaveFourForms) {
  const std::vector<int32_t> tokens = model_.tokenizer->Encode("def add", false);
  const std::vector<Json> forms = {"def add", tokens, Json::array({"def add", "x"}),
                                   Json::array({tokens, {7}})};
  for (const Json& form : forms) {
    const Call call = Completion({{"prompt", form}});
    EXPECT_EQ(call.prompts[0].tokens, tokens) << form;
    EXPECT_EQ(call.prompts[0].text, "def add") << form;
    EXPECT_EQ(call.prompts.size(), form.is_array() && !form[0].is_number() ? 2u : 1u) << form;
  }
}

TEST_F(CallTest, OtherPromptsAreRefused) {
  const std::vector<Json> forms = {5,
                                   true,
                                   "",
                                   Json::object(),
                                   Json::array(),
                                   Json::array({Json::array()}),
                                   Json::array({"a", 5}),
                                   Json::array({-1}),
                                   Json::array({1.5}),
                                   Json::array({4294967296}),
                                   Json::array({18446744073709551615u}),
                                   Json::array({1, "a"}),
                                   std::vector<std::string>(kPromptsMax + 1, "a")};
  for (const Json& form : forms) {
    const ApiError error = Refused("prompt", form);
    EXPECT_EQ(error.status(), 400) << form.dump().substr(0, 100);
    EXPECT_EQ(error.param(), "prompt") << error.what();
  }
  const ApiError missing = ErrorOf([&] { ReadCompletionCall(Json::object(), model_); });
  EXPECT_THAT(missing.what(), HasSubstr("prompt is missing"));
}

TEST_F(CallTest, WhatACallDoesNotSayHasOpenAisDefaults) {
  const Call call = Completion({});
  EXPECT_TRUE(call.sampling.do_sample);
  EXPECT_EQ(call.sampling.settings.at("top_k"), 0);
  EXPECT_FALSE(call.sampling.settings.contains("temperature"));  // the checkpoint's, else 1
  EXPECT_THAT(call.tokens_max, ElementsAre(16));
  EXPECT_EQ(call.n, 1);
  EXPECT_EQ(call.logprobs, Call::kNoLogprobs);
  EXPECT_FALSE(call.echo || call.stream);
  EXPECT_NE(call.seed, Completion({}).seed);
}

TEST_F(CallTest, AChatMayFillTheContext) {
  const Call call = Chat({});
  EXPECT_EQ(call.tokens_max[0] + static_cast<int>(call.prompts[0].tokens.size()), 2048);
}

TEST_F(CallTest, TemperatureZeroIsGreedy) {
  const Call greedy = Completion({{"temperature", 0}, {"top_p", 0.5}, {"top_k", 3}});
  EXPECT_FALSE(greedy.sampling.do_sample);
  const Call drawn =
      Completion({{"temperature", 0.5}, {"top_p", 0.25}, {"top_k", 3}, {"min_p", 0.125}});
  EXPECT_TRUE(drawn.sampling.do_sample);
  EXPECT_EQ(drawn.sampling.settings.at("temperature"), 0.5);
  EXPECT_EQ(drawn.sampling.settings.at("top_p"), 0.25);
  EXPECT_EQ(drawn.sampling.settings.at("top_k"), 3);
  EXPECT_EQ(drawn.sampling.settings.at("min_p"), 0.125);
  EXPECT_EQ(Completion({{"top_k", -1}}).sampling.settings.at("top_k"), 0);
}

TEST_F(CallTest, ACheckpointsTopKHoldsIfTheCallSaysNone) {
  model_.has_top_k = true;
  EXPECT_FALSE(Completion({}).sampling.settings.contains("top_k"));
  EXPECT_EQ(Completion({{"top_k", 0}}).sampling.settings.at("top_k"), 0);
}

TEST_F(CallTest, TheCheckpointsLengthsNeverHold) {
  const Json& settings = Completion({}).sampling.settings;
  for (const char* key : {"max_new_tokens", "max_length"}) {
    EXPECT_TRUE(settings.contains(key) && settings.at(key).is_null()) << key;
  }
}

TEST_F(CallTest, OtherMembersAreRead) {
  const Call call = Completion({{"max_tokens", 0},
                                {"seed", -5},
                                {"n", 3},
                                {"best_of", 3},
                                {"stop", {"a", "b"}},
                                {"echo", true},
                                {"logprobs", 2},
                                {"stream", true},
                                {"stream_options", {{"include_usage", true}}},
                                {"repetition_penalty", 2},
                                {"min_tokens", 4},
                                {"return_tokens_as_token_ids", true},
                                {"user", "me"},
                                {"suffix", nullptr}});
  EXPECT_THAT(call.tokens_max, ElementsAre(0));
  EXPECT_EQ(call.seed, -5);
  EXPECT_EQ(call.n, 3);
  EXPECT_THAT(call.sampling.until, ElementsAre("a", "b"));
  EXPECT_TRUE(call.echo && call.stream && call.stream_usage && call.token_ids_as_names);
  EXPECT_EQ(call.logprobs, 2);
  EXPECT_TRUE(call.sampling.settings.at("repetition_penalty").is_number_float());
  EXPECT_EQ(call.sampling.settings.at("min_new_tokens"), 4);
  EXPECT_THAT(Completion({{"stop", "x"}}).sampling.until, ElementsAre("x"));
}

TEST_F(CallTest, ValuesOutOfRangeAreRefusedByName) {
  const std::vector<std::pair<std::string, Json>> wrong = {
      {"max_tokens", -1},
      {"max_tokens", 1.5},
      {"max_tokens", "5"},
      {"temperature", -0.1},
      {"temperature", "hot"},
      {"top_p", 1.5},
      {"top_p", true},
      {"top_k", -2},
      {"min_p", 2},
      {"n", 0},
      {"n", 129},
      {"seed", 1.5},
      {"seed", "x"},
      {"seed", UINT64_MAX},
      {"stop", 5},
      {"stop", ""},
      {"stop", {{"a"}, {"b"}}},
      {"stop", std::vector<std::string>(65, "a")},
      {"stop", std::string(2000, 'a')},
      {"echo", 1},
      {"logprobs", true},
      {"logprobs", 21},
      {"logprobs", -1},
      {"stream", "yes"},
      {"stream_options", {{"include_usage", true}}},
      {"best_of", 2},
      {"model", 5},
      {"repetition_penalty", 0}};
  for (const auto& [key, value] : wrong) {
    const ApiError error = Refused(key, value);
    EXPECT_EQ(error.status(), 400) << key << " " << value;
    EXPECT_EQ(error.param(), key) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(key));
  }
}

TEST_F(CallTest, WhatWouldChangeAnswersIsNeverIgnored) {
  const std::vector<std::pair<std::string, Json>> unserved = {
      {"logit_bias", {{"5", 1}}},
      {"frequency_penalty", 0.5},
      {"presence_penalty", 1},
      {"suffix", "x"},
      {"ignore_eos", true},
      {"stop_token_ids", {1}},
      {"response_format", {{"type", "json_object"}}},
      {"guided_json", Json::object()},
      {"max_completion_tokens", 5},
      {"no such thing", 0}};
  for (const auto& [key, value] : unserved) {
    const ApiError error = Refused(key, value);
    EXPECT_EQ(error.status(), 400) << key;
    EXPECT_EQ(error.param(), key) << error.what();
  }
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{
           {"tools", {{{"type", "function"}}}},
           {"tool_choice", "required"},
           {"functions", {{{"name", "f"}}}},
           {"modalities", {"audio"}},
           {"chat_template_kwargs", {{"enable_thinking", true}}},
           {"reasoning_effort", "low"},
           {"echo", true}}) {
    const ApiError error = RefusedChat(key, value);
    EXPECT_EQ(error.status(), 400) << key;
    EXPECT_EQ(error.param(), key) << error.what();
  }
}

TEST_F(CallTest, ValuesWithoutEffectAreTaken) {
  Completion({{"logit_bias", Json::object()},
              {"frequency_penalty", 0},
              {"presence_penalty", 0.0},
              {"suffix", ""},
              {"response_format", {{"type", "text"}}},
              {"skip_special_tokens", true},
              {"unheard_of", nullptr}});
  Chat({{"tools", Json::array()},
        {"tool_choice", "none"},
        {"modalities", {"text"}},
        {"parallel_tool_calls", true},
        {"chat_template_kwargs", Json::object()}});
}

TEST_F(CallTest, AMisspeltMemberIsNamedWithTheNearest) {
  EXPECT_THAT(Refused("max_token", 5).what(), HasSubstr("did you mean 'max_tokens'?"));
}

TEST_F(CallTest, ALongPromptIsRefusedAndNotCut) {
  const std::vector<int32_t> tokens(2040, 5);
  EXPECT_EQ(Completion({{"prompt", tokens}, {"max_tokens", 8}}).tokens_max[0], 8);
  const ApiError error = ErrorOf([&] { Completion({{"prompt", tokens}, {"max_tokens", 9}}); });
  EXPECT_EQ(error.code(), "context_length_exceeded");
  EXPECT_THAT(error.what(), HasSubstr("the prompt has 2040 tokens"));
  EXPECT_THAT(error.what(), HasSubstr("at most 2048"));
  Json messages = {{{"role", "user"}, {"content", std::string(20'000, 'x')}}};
  EXPECT_EQ(RefusedChat("messages", messages).code(), "context_length_exceeded");
}

TEST_F(CallTest, TooManyChoicesAreRefused) {
  const ApiError error =
      ErrorOf([&] { Completion({{"prompt", std::vector<std::string>(100, "a")}, {"n", 128}}); });
  EXPECT_THAT(error.what(), HasSubstr("at most 4096"));
}

TEST_F(CallTest, AnotherModelIsNotFound) {
  EXPECT_EQ(Refused("model", "gpt-4").status(), 404);
  EXPECT_EQ(Refused("model", "gpt-4").code(), "model_not_found");
  Completion({{"model", "step-01200"}});
  Completion({{"model", Checkpoint().string()}});
}

TEST_F(CallTest, AnEngineWithoutTokensGivesNoLogprobs) {
  model_.reports_tokens = false;
  EXPECT_EQ(Refused("logprobs", 0).param(), "logprobs");
  EXPECT_EQ(RefusedChat("logprobs", true).param(), "logprobs");
}

TEST_F(CallTest, MessagesAreRenderedWithTheTemplate) {
  const Json messages = {
      {{"role", "system"}, {"content", "be brief"}},
      {{"role", "user"},
       {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}},
       {"tool_calls", nullptr}}};
  const Call call = Chat({{"messages", messages}});
  EXPECT_EQ(call.prompts[0].text, "system: be brief\nuser: a\nb\nassistant:");
  EXPECT_EQ(Decoded(call.prompts[0].tokens), call.prompts[0].text);
}

TEST_F(CallTest, AFinalMessageMayBeContinued) {
  const Json messages = {{{"role", "user"}, {"content", "hi"}},
                         {{"role", "assistant"}, {"content", "well"}}};
  const Call call = Chat(
      {{"messages", messages}, {"continue_final_message", true}, {"add_generation_prompt", false}});
  EXPECT_EQ(call.prompts[0].text, "user: hi\nassistant: well");
  EXPECT_EQ(ErrorOf([&] {
              Chat({{"continue_final_message", true}, {"add_generation_prompt", true}});
            }).param(),
            "add_generation_prompt");
}

TEST_F(CallTest, OtherMessagesAreRefused) {
  const Json image = {{{"type", "image_url"}, {"image_url", {{"url", "data:,"}}}}};
  const std::vector<Json> wrong = {
      5,
      Json::array(),
      {5},
      {{{"role", "user"}}},
      {{{"content", "x"}}},
      {{{"role", "robot"}, {"content", "x"}}},
      {{{"role", 5}, {"content", "x"}}},
      {{{"role", "user"}, {"content", 5}}},
      {{{"role", "user"}, {"content", image}}},
      {{{"role", "user"}, {"content", {{{"type", "text"}}}}}},
      {{{"role", "assistant"}, {"content", "x"}, {"tool_calls", {{{"id", "1"}}}}}}};
  for (const Json& messages : wrong) {
    const ApiError error = RefusedChat("messages", messages);
    EXPECT_EQ(error.status(), 400) << messages;
    EXPECT_THAT(error.what(), HasSubstr("messages")) << messages;
  }
}

TEST_F(CallTest, ATemplateMayObject) {
  model_.chat.emplace("{{ raise_exception('only users') }}", Json::object(), std::nullopt,
                      "a test");
  EXPECT_THAT(ErrorOf([&] { Chat({}); }).what(), HasSubstr("only users"));
  model_.chat.reset();
  model_.no_chat = "found no chat template";
  EXPECT_EQ(ErrorOf([&] { Chat({}); }).code(), "no_chat_template");
}

TEST_F(CallTest, TokensOfTextsAndMessages) {
  const Json tokens = Tokenize({{"prompt", "def add"}}, model_);
  EXPECT_EQ(tokens.at("tokens"), Json(model_.tokenizer->Encode("def add", true)));
  EXPECT_EQ(tokens.at("count"), tokens.at("tokens").size());
  EXPECT_EQ(tokens.at("max_model_len"), 2048);
  EXPECT_EQ(Detokenize({{"tokens", tokens.at("tokens")}}, model_).at("prompt"), "def add");
  const Json chat = Tokenize({{"messages", {{{"role", "user"}, {"content", "hi"}}}}}, model_);
  EXPECT_EQ(Detokenize({{"tokens", chat.at("tokens")}}, model_).at("prompt"),
            "user: hi\nassistant:");
  EXPECT_EQ(ErrorOf([&] { Tokenize(Json::object(), model_); }).param(), "prompt");
  EXPECT_EQ(ErrorOf([&] { Detokenize({{"tokens", "x"}}, model_); }).param(), "tokens");
  EXPECT_EQ(TokenizerInfo(model_).at("eos_token"), "<|endoftext|>");
}

TEST_F(CallTest, AnErrorHasOpenAisForm) {
  const Json error = ApiError(400, "no", "n", "bad").ToJson().at("error");
  EXPECT_EQ(
      error,
      Json(
          {{"message", "no"}, {"type", "invalid_request_error"}, {"param", "n"}, {"code", "bad"}}));
  EXPECT_TRUE(ApiError(503, "no").ToJson().at("error").at("param").is_null());
  EXPECT_EQ(ApiError(503, "no").ToJson().at("error").at("type"), "server_error");
  EXPECT_EQ(ApiErrorFor(Error(ErrorKind::kInput, "odd", "even")).status(), 400);
  EXPECT_EQ(std::string(ApiErrorFor(Error(ErrorKind::kInternal, "secret")).what()).find("secret"),
            std::string::npos);
}

}  // namespace
}  // namespace evald::endpoint::test

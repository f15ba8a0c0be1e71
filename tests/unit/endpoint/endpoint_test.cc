// The API over real sockets, with evald's own engine behind it.
#include "worker/endpoint/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/jsonl.h"
#include "base/text.h"
#include "scripted_engine.h"
#include "support.h"
#include "tests/unit/http_server/socket_client.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::endpoint::test {
namespace {

using http::test::Answer;
using http::test::Ask;
using http::test::Fetch;
using http::test::SocketClient;
using ::testing::HasSubstr;

constexpr const char* kKey = "a-key-of-sixteen-or-more";
const std::string kAuthorization = std::string("Authorization: Bearer ") + kKey + "\r\n";
constexpr const char* kPrompt = "def first_even(numbers):\n    \"\"\"";

struct Choice {
  std::string text;
  std::string finish_reason;
  Json logprobs;
};

class EndpointTest : public ::testing::Test {
 protected:
  explicit EndpointTest(std::unique_ptr<Engine> engine = LoadedEngine())
      : engine_(std::move(engine)) {
    EndpointOptions options;
    options.key = kKey;
    endpoint_.emplace(engine_.get(), Model(), options, [this] { ++broken_; });
  }

  Answer Post(const std::string& path, const std::string& body) {
    return Fetch(endpoint_->port(), Ask("POST", path, kAuthorization, body));
  }
  Json Reply(const std::string& path, const Json& body) {
    const Answer answer = Post(path, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return ParseJson(answer.body, "the answer");
  }
  Json Complete(Json body) {
    if (!body.contains("prompt")) body["prompt"] = kPrompt;
    if (!body.contains("temperature")) body["temperature"] = 0;
    return Reply("/v1/completions", body);
  }
  Json ErrorAt(const std::string& path, const std::string& body, int status) {
    const Answer answer = Post(path, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return ParseJson(answer.body, "the answer").at("error");
  }
  // The chunks of a stream, without the last frame.
  std::vector<Json> Stream(const std::string& path, Json body) {
    body["stream"] = true;
    SocketClient client(endpoint_->port());
    client.Send(Ask("POST", path, kAuthorization, body.dump()));
    const std::string all = client.ReceiveUntil("0\r\n\r\n");
    EXPECT_THAT(all, HasSubstr("Content-Type: text/event-stream"));
    EXPECT_THAT(all, HasSubstr("data: [DONE]\n\n"));
    std::vector<Json> chunks;
    for (const std::string& line : Split(all, '\n')) {
      if (line.starts_with("data: {"))
        chunks.push_back(ParseJson(line.substr(std::string("data: ").size()), "a chunk"));
    }
    return chunks;
  }
  // The choices of a stream, put together.
  static std::map<int, Choice> Together(const std::vector<Json>& chunks) {
    std::map<int, Choice> choices;
    for (const Json& chunk : chunks) {
      for (const Json& part : chunk.at("choices")) {
        Choice& choice = choices[part.at("index").get<int>()];
        choice.text += part.contains("text") ? part.at("text").get<std::string>()
                                             : part.at("delta").value("content", "");
        if (!part.at("finish_reason").is_null()) choice.finish_reason = part.at("finish_reason");
        for (const auto& [key, values] : part.at("logprobs").items()) {
          for (const Json& value : values) choice.logprobs[key].push_back(value);
        }
      }
    }
    return choices;
  }

  std::unique_ptr<Engine> engine_;
  std::atomic<int> broken_{0};
  std::optional<Endpoint> endpoint_;
};

// The answer of another engine of the same kind.
Generation EnginesOwn(const Request& request) {
  const std::unique_ptr<Engine> engine = LoadedEngine();
  engine->Submit(1, request);
  std::vector<Finished> finished;
  while (finished.empty()) finished = engine->Step(std::chrono::seconds(1));
  return finished[0].generation;
}

TEST_F(EndpointTest, TextsAreTheEngines) {
  for (const std::string stop : {"\n", "return", "none of it"}) {
    Request request;
    request.context = kPrompt;
    request.sampling.until = {stop};
    request.sampling.max_gen_toks = 60;
    const Generation own = EnginesOwn(request);
    const Json reply = Complete({{"max_tokens", 60}, {"stop", stop}});
    const Json& choice = reply.at("choices")[0];
    EXPECT_EQ(choice.at("text"), own.text);
    EXPECT_EQ(choice.at("finish_reason"), own.finish == FinishReason::kLength ? "length" : "stop");
    EXPECT_TRUE(choice.at("logprobs").is_null());
    EXPECT_EQ(reply.at("object"), "text_completion");
    EXPECT_EQ(reply.at("model"), "step-01200");
    EXPECT_EQ(reply.at("usage").at("prompt_tokens"), own.tokens_in);
    EXPECT_EQ(reply.at("usage").at("completion_tokens"), own.tokens_out);
    EXPECT_EQ(reply.at("usage").at("total_tokens"), own.tokens_in + own.tokens_out);
  }
}

// As lm-evaluation-harness reads them (LocalCompletionsAPI.parse_logprobs, lm_eval 0.4.13).
TEST_F(EndpointTest, EchoedLogprobsAreTheEngines) {
  const auto tokenizer = Tokenizer::Load(Checkpoint());
  int greedy = 0;
  const auto likeliest =
      Complete({{"max_tokens", 3}}).at("choices")[0].at("text").get<std::string>();
  for (const std::string& continuation :
       {likeliest, std::string(" A"), std::string("Return the first"), std::string("x y z")}) {
    Request request;
    request.kind = RequestKind::kLoglikelihood;
    request.context_tokens = tokenizer->Encode(kPrompt, false);
    request.continuation_tokens = tokenizer->Encode(continuation, false);
    const Generation own = EnginesOwn(request);
    std::vector<int32_t> tokens = request.context_tokens;
    tokens.insert(tokens.end(), request.continuation_tokens.begin(),
                  request.continuation_tokens.end());
    const Json reply =
        Complete({{"prompt", {tokens}}, {"max_tokens", 1}, {"logprobs", 1}, {"echo", true}});
    const Json& logprobs = reply.at("choices")[0].at("logprobs");
    ASSERT_EQ(logprobs.at("token_logprobs").size(), tokens.size() + 1);
    EXPECT_TRUE(logprobs.at("token_logprobs")[0].is_null());
    EXPECT_TRUE(logprobs.at("top_logprobs")[0].is_null());
    double sum = 0;
    bool all_greedy = true;
    for (size_t i = request.context_tokens.size(); i < tokens.size(); ++i) {
      const auto value = logprobs.at("token_logprobs")[i].get<double>();
      double best = -1e9;
      for (const Json& other : logprobs.at("top_logprobs")[i])
        best = std::max(best, other.get<double>());
      sum += value;
      all_greedy = all_greedy && value == best;
    }
    EXPECT_EQ(sum, own.loglikelihood) << continuation;
    EXPECT_EQ(all_greedy, own.is_greedy) << continuation;
    greedy += own.is_greedy ? 1 : 0;
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_EQ(logprobs.at("text_offset")[i], text.size());
      text += logprobs.at("tokens")[i].get<std::string>();
    }
    EXPECT_EQ(text, kPrompt + continuation);
    EXPECT_TRUE(reply.at("choices")[0].at("text").get<std::string>().starts_with(text));
  }
  EXPECT_GT(greedy, 0);
}

TEST_F(EndpointTest, GeneratedTokensHaveTheLogprobsThatThePromptWouldHave) {
  const Json body = {{"max_tokens", 12}, {"logprobs", 4}, {"return_tokens_as_token_ids", true}};
  const Json whole = Complete(body);
  const Json& generated = whole.at("choices")[0].at("logprobs");
  std::vector<int32_t> tokens = Model().tokenizer->Encode(kPrompt, false);
  const size_t prompt = tokens.size();
  for (const Json& name : generated.at("tokens")) {
    ASSERT_TRUE(name.get<std::string>().starts_with("token_id:"));
    tokens.push_back(std::stoi(name.get<std::string>().substr(9)));
  }
  const Json echoed = Complete({{"prompt", tokens},
                                {"max_tokens", 0},
                                {"logprobs", 4},
                                {"echo", true},
                                {"return_tokens_as_token_ids", true}});
  const Json& scored = echoed.at("choices")[0].at("logprobs");
  ASSERT_EQ(scored.at("tokens").size(), tokens.size());
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(generated.at("token_logprobs")[i], scored.at("token_logprobs")[prompt + i]);
    EXPECT_EQ(generated.at("top_logprobs")[i], scored.at("top_logprobs")[prompt + i]);
    EXPECT_EQ(generated.at("top_logprobs")[i].size(), 4u);
  }
  EXPECT_EQ(echoed.at("usage").at("completion_tokens"), 0);
  EXPECT_EQ(echoed.at("choices")[0].at("finish_reason"), "length");
}

TEST_F(EndpointTest, ALogitThatSettingsChangeIsReportedAsItWas) {
  const Json plain = Complete({{"max_tokens", 1}, {"logprobs", 3}});
  const Json penal = Complete({{"max_tokens", 1}, {"logprobs", 3}, {"repetition_penalty", 1.0001}});
  const Json& a = plain.at("choices")[0].at("logprobs").at("top_logprobs")[0];
  const Json& b = penal.at("choices")[0].at("logprobs").at("top_logprobs")[0];
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a.items()) {
    EXPECT_NEAR(value.get<double>(), b.at(name).get<double>(), 1e-6);
  }
}

TEST_F(EndpointTest, ASeedGivesTheSameTextsAloneAndTogether) {
  const Json drawn = {{"temperature", 1.5}, {"max_tokens", 10}, {"seed", 7}};
  Json three = drawn, other = drawn, prompts = drawn;
  three["n"] = 3;
  other["seed"] = 8;
  prompts["prompt"] = {"def", kPrompt};
  const auto text = [](const Json& reply, size_t i) { return reply.at("choices")[i].at("text"); };
  const Json one = Complete(drawn), many = Complete(three);
  EXPECT_EQ(text(one, 0), text(Complete(drawn), 0));
  EXPECT_EQ(text(one, 0), text(many, 0));
  EXPECT_NE(text(many, 0), text(many, 1));
  EXPECT_NE(text(many, 1), text(many, 2));
  EXPECT_NE(text(one, 0), text(Complete(other), 0));
  const Json both = Complete(prompts);
  EXPECT_EQ(text(both, 1), text(one, 0));
  EXPECT_EQ(both.at("choices")[1].at("index"), 1);
}

TEST_F(EndpointTest, AStreamIsTheWholeAnswer) {
  for (Json body : {Json{{"max_tokens", 30}, {"stop", "\n"}}, Json{{"max_tokens", 5}, {"n", 2}},
                    Json{{"max_tokens", 5}, {"logprobs", 2}, {"echo", true}},
                    Json{{"max_tokens", 0}, {"echo", true}}}) {
    body["prompt"] = {kPrompt, "x = "};
    body["temperature"] = 0;
    const Json whole = Complete(body);
    std::map<int, Choice> streamed = Together(Stream("/v1/completions", body));
    ASSERT_EQ(streamed.size(), whole.at("choices").size());
    for (const Json& choice : whole.at("choices")) {
      const Choice& parts = streamed.at(choice.at("index").get<int>());
      EXPECT_EQ(choice.at("text"), parts.text);
      EXPECT_EQ(choice.at("finish_reason"), parts.finish_reason);
      EXPECT_EQ(parts.logprobs, choice.at("logprobs"));
    }
  }
}

TEST_F(EndpointTest, AStreamMayEndWithTheUsage) {
  const std::vector<Json> chunks =
      Stream("/v1/completions",
             {{"prompt", "def"}, {"max_tokens", 4}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_TRUE(chunks.back().at("choices").empty());
  EXPECT_EQ(chunks.back().at("usage").at("completion_tokens"), 4);
}

TEST_F(EndpointTest, Chats) {
  const Json body = {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                     {"max_completion_tokens", 8},
                     {"temperature", 0},
                     {"logprobs", true},
                     {"top_logprobs", 2}};
  const Json reply = Reply("/v1/chat/completions", body);
  const Json& choice = reply.at("choices")[0];
  EXPECT_EQ(reply.at("object"), "chat.completion");
  EXPECT_EQ(choice.at("message").at("role"), "assistant");
  Request request;
  request.context = "user: hi\nassistant:";
  request.sampling.max_gen_toks = 8;
  const Generation own = EnginesOwn(request);
  EXPECT_EQ(choice.at("message").at("content"), own.text);
  const Json& tokens = choice.at("logprobs").at("content");
  ASSERT_EQ(tokens.size(), static_cast<size_t>(own.tokens_out));
  for (const Json& token : tokens) {
    EXPECT_EQ(token.at("top_logprobs").size(), 2u);
    EXPECT_EQ(token.at("top_logprobs")[0].at("logprob"), token.at("logprob"));  // greedy
    EXPECT_EQ(token.at("bytes").size(), token.at("token").get<std::string>().size());
  }
  const std::vector<Json> chunks = Stream("/v1/chat/completions", body);
  EXPECT_EQ(chunks[0].at("object"), "chat.completion.chunk");
  EXPECT_EQ(chunks[0].at("choices")[0].at("delta").at("role"), "assistant");
  const Choice streamed = Together(chunks).at(0);
  EXPECT_EQ(choice.at("message").at("content"), streamed.text);
  EXPECT_EQ(streamed.logprobs, choice.at("logprobs"));
  EXPECT_EQ(choice.at("finish_reason"), streamed.finish_reason);
}

TEST_F(EndpointTest, ManyAtOnceAreAnsweredAsAlone) {
  std::vector<Json> bodies;
  for (int i = 0; i < 40; ++i) {
    bodies.push_back({{"prompt", "def f" + std::to_string(i % 8) + "("},
                      {"max_tokens", 8 + i % 3},
                      {"temperature", 0},
                      {"echo", i % 2 == 0},
                      {"logprobs", i % 4}});
  }
  std::vector<Json> together(bodies.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < bodies.size(); ++i)
    threads.emplace_back([&, i] { together[i] = Complete(bodies[i]); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < bodies.size(); ++i)
    EXPECT_EQ(together[i].at("choices"), Complete(bodies[i]).at("choices")) << bodies[i];
}

TEST_F(EndpointTest, ModelsHealthAndTokens) {
  const auto get = [&](const std::string& path) {
    return Fetch(endpoint_->port(), Ask("GET", path, kAuthorization));
  };
  EXPECT_EQ(ParseJson(get("/v1/models").body, "").at("data")[0].at("id"), "step-01200");
  EXPECT_EQ(get("/v1/models/step-01200").status, 200);
  EXPECT_EQ(get("/v1/models/other").status, 404);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_THAT(get("/tokenizer_info").body, HasSubstr("<|endoftext|>"));
  EXPECT_EQ(Reply("/tokenize", {{"prompt", "def"}}).at("count"), 1);
  EXPECT_EQ(Reply("/detokenize", {{"tokens", Json::array()}}).at("prompt"), "");
}

TEST_F(EndpointTest, WithoutTheKeyThereIsNothing) {
  for (const std::string header : {"", "Authorization: Bearer wrong-key-of-some-length\r\n",
                                   "Authorization: Basic eA==\r\n"}) {
    for (const std::string path : {"/v1/models", "/v1/models/x", "/tokenizer_info"}) {
      EXPECT_EQ(Fetch(endpoint_->port(), Ask("GET", path, header)).status, 401);
    }
    for (const std::string path : {"/v1/completions", "/v1/chat/completions", "/tokenize"}) {
      const Answer answer = Fetch(endpoint_->port(), Ask("POST", path, header, "{}"));
      EXPECT_EQ(answer.status, 401);
      EXPECT_EQ(ParseJson(answer.body, "").at("error").at("code"), "invalid_api_key");
    }
  }
  EXPECT_EQ(Fetch(endpoint_->port(), Ask("GET", "/health")).status, 200);
}

TEST_F(EndpointTest, BadCallsAreAnsweredInOpenAisForm) {
  EXPECT_EQ(ErrorAt("/v1/completions", "{\"prompt\": \"x\"", 400).at("code"), "invalid_json");
  EXPECT_EQ(ErrorAt("/v1/completions", "", 400).at("type"), "invalid_request_error");
  EXPECT_EQ(ErrorAt("/v1/completions", "[]", 400).at("type"), "invalid_request_error");
  EXPECT_EQ(
      ErrorAt("/v1/completions", std::string(500, '[') + std::string(500, ']'), 400).at("code"),
      "invalid_json");
  EXPECT_EQ(ErrorAt("/v1/nothing", "{}", 404).at("type"), "invalid_request_error");
  EXPECT_EQ(ErrorAt("/v1/models", "{}", 405).at("type"), "invalid_request_error");
  EXPECT_EQ(ErrorAt("/v1/completions", R"({"prompt": "x", "model": "y"})", 404).at("code"),
            "model_not_found");
  // A token outside the vocabulary is found by the engine.
  EXPECT_THAT(ErrorAt("/v1/completions", R"({"prompt": [99999999]})", 400).at("message"),
              HasSubstr("found token 99999999"));
  EXPECT_THAT(
      ErrorAt("/v1/completions", R"({"prompt": [99999999], "stream": true})", 400).at("message"),
      ::testing::StartsWith("found token"));
  EXPECT_EQ(Fetch(endpoint_->port(), Ask("POST", "/v1/completions",
                                         kAuthorization + "Content-Length: 999999999999\r\n"))
                .status,
            413);
}

// The engine answers when the test says so.
class ScriptedEndpointTest : public EndpointTest {
 protected:
  ScriptedEndpointTest() : EndpointTest(std::make_unique<ScriptedEngine>()) {}
  ScriptedEngine* engine() { return static_cast<ScriptedEngine*>(engine_.get()); }
  bool WaitForPending(size_t count) {
    const auto end = std::chrono::steady_clock::now() + http::test::kPatience;
    while (engine_->pending() != count && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return engine_->pending() == count;
  }
  std::string Call(bool stream) {
    return Ask("POST", "/v1/completions", kAuthorization,
               Json{{"prompt", "def"}, {"n", 3}, {"stream", stream}}.dump());
  }
};

TEST_F(ScriptedEndpointTest, TheCallOfAClientThatLeavesIsCancelled) {
  for (const bool stream : {false, true}) {
    {
      SocketClient client(endpoint_->port());
      client.Send(Call(stream));
      ASSERT_TRUE(WaitForPending(3));
    }
    EXPECT_TRUE(WaitForPending(0)) << stream;
  }
}

TEST_F(ScriptedEndpointTest, AnEnginesFailureIsAnsweredWith503) {
  SocketClient client(endpoint_->port());
  client.Send(Call(false));
  ASSERT_TRUE(WaitForPending(3));
  engine()->Fail(Error(ErrorKind::kInfrastructure, "no memory"));
  const Answer answer = client.Receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("no memory"));
  EXPECT_EQ(broken_, 0);
}

TEST_F(ScriptedEndpointTest, AnEndpointThatIsStoppedEndsItsCalls) {
  SocketClient whole(endpoint_->port()), stream(endpoint_->port());
  whole.Send(Call(false));
  stream.Send(Call(true));
  ASSERT_TRUE(WaitForPending(6));
  endpoint_->Stop();
  EXPECT_THAT(whole.ReceiveUntil("the endpoint ends"), HasSubstr("503"));
  EXPECT_THAT(stream.ReceiveUntil("the endpoint ends"), HasSubstr("the endpoint ends"));
}

TEST_F(ScriptedEndpointTest, ABrokenEngineIsReported) {
  engine()->Break();
  SocketClient client(endpoint_->port());
  client.Send(Call(false));
  EXPECT_EQ(client.Receive().status, 503);
  EXPECT_EQ(broken_, 1);
  SocketClient next(endpoint_->port());
  next.Send(Call(false));
  EXPECT_EQ(next.Receive().status, 503);
}

TEST(Endpoint, AUnixSocketServesThisUserWithoutAKey) {
  TemporaryFolder folder;
  ScriptedEngine engine;
  engine.AnswerFromNowOn();
  EndpointOptions options;
  options.socket = folder.path() / "socket";
  Endpoint endpoint(&engine, Model(), options, [] {});
  EXPECT_EQ(endpoint.url(), "unix:" + options.socket.string());
  SocketClient client(options.socket);
  client.Send(Ask("POST", "/v1/completions", "", R"({"prompt": "x"})"));
  EXPECT_THAT(client.Receive().body, HasSubstr("\"text\":\"answer\""));
}

TEST(Endpoint, TcpNeedsAKey) {
  ScriptedEngine engine;
  EXPECT_THAT(CaughtText([&] { Endpoint(&engine, Model(), {}, [] {}); }), HasSubstr("needs a key"));
}

}  // namespace
}  // namespace evald::endpoint::test

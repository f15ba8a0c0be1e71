// The openai engine, with a real HTTP server in this process and with servers that the engine
// starts.
#include "worker/server/server_engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>

#include "base/clock.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"
#include "tiny_server.h"
#include "tiny_tokenizer.h"
#include "worker/server/server_process.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::TinyReply;
using test::TinyServer;
using testing::HasSubstr;

TinyReply Completion(const std::string& body, Fault fault = Fault::kNone) {
  return {200, ToLine(test::ToyCompletion(ParseJson(body, "request"), fault))};
}

// Answers health and model questions. `complete` answers completions.
TinyServer::Handler Serving(std::function<TinyReply(const std::string& body)> complete) {
  return [complete](const std::string& path, const std::string& body) -> TinyReply {
    if (path == "/health") return {200, "{}"};
    if (path == "/v1/models") {
      return {200,
              R"({"data":[{"id":"other","max_model_len":8},{"id":"toy","max_model_len":64}]})"};
    }
    if (path == "/v1/completions") return complete(body);
    return {404, "{}"};
  };
}

class ServerEngine : public testing::Test {
 protected:
  ServerEngine() { test::WriteTinyCheckpoint(folder_.path(), 512); }

  std::unique_ptr<Engine> Open(const TinyServer& server, Json settings = Json::object()) {
    if (!settings.contains("base_url")) settings["base_url"] = server.url();
    if (!settings.contains("model")) settings["model"] = "toy";
    auto engine = MakeServerEngine({"openai", settings, "cpu:0", 1, 1});
    engine->Load(folder_.path());
    return engine;
  }

  static Request Question(int64_t doc_id, const std::string& text = "hello world") {
    Request request;
    request.task = "t";
    request.doc_id = doc_id;
    request.context = text;
    request.sampling.max_gen_toks = 8;
    for (const char c : text) request.context_tokens.push_back(static_cast<unsigned char>(c));
    return request;
  }

  static std::map<int64_t, Generation> Run(Engine* engine, const std::vector<Request>& requests) {
    uint64_t tag = 0;
    for (const Request& request : requests) engine->Submit(tag++, request);
    std::map<int64_t, Generation> answers;
    while (engine->pending() > 0) {
      for (const Finished& one : engine->Step(std::chrono::milliseconds(50))) {
        answers[one.generation.doc_id] = one.generation;
      }
    }
    return answers;
  }

  TemporaryFolder folder_;
};

TEST_F(ServerEngine, GeneratesWithTextAndWithTokens) {
  TinyServer server(Serving([](const std::string& body) { return Completion(body); }));
  const auto text = Open(server);
  EXPECT_EQ(text->Info().kinds, std::vector<RequestKind>{RequestKind::kGenerateUntil});
  EXPECT_FALSE(text->Info().wants_tokens);
  EXPECT_EQ(text->Info().max_length, 64);  // of the named model, not of the first one
  const auto tokens = Open(server, Json{{"prompt", "tokens"}});
  EXPECT_TRUE(tokens->Info().wants_tokens);
  std::vector<Request> requests;
  for (int64_t i = 0; i < 30; ++i) requests.push_back(Question(i, fmt::format("word {}", i)));
  const auto a = Run(text.get(), requests);
  const auto b = Run(tokens.get(), requests);
  ASSERT_EQ(a.size(), 30u);
  for (int64_t i = 0; i < 30; ++i) {
    EXPECT_EQ(a.at(i).text.size(), 8u);
    EXPECT_EQ(a.at(i).text, b.at(i).text);
    EXPECT_EQ(a.at(i).finish, FinishReason::kLength);
    EXPECT_EQ(a.at(i).tokens_in, static_cast<int>(requests[static_cast<size_t>(i)].context.size()));
    EXPECT_EQ(a.at(i).tokens_out, 8);
  }
}

TEST_F(ServerEngine, HoldsAsManyRequestsAsItWasTold) {
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0, now = 0, most = 0;
  TinyServer server(Serving([&](const std::string& body) {
    std::unique_lock lock(mutex);
    if (calls++ == 0) return Completion(body);  // the warm-up's request
    most = std::max(most, ++now);
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return most >= 6; });
    changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return most > 6; });
    --now;
    return Completion(body);
  }));
  const auto engine = Open(server, Json{{"concurrency", 6}});
  std::vector<Request> requests;
  for (int64_t i = 0; i < 24; ++i) requests.push_back(Question(i));
  EXPECT_EQ(Run(engine.get(), requests).size(), 24u);
  EXPECT_EQ(most, 6);
}

TEST_F(ServerEngine, TriesAgainWhatMayWorkAnotherTime) {
  std::atomic<int> calls{-1};  // the first request is the warm-up's
  TinyServer server(Serving([&](const std::string& body) -> TinyReply {
    switch (calls++) {
      case 0:
        return {429, R"({"error":{"message":"slow down"}})", 0, false, "0"};
      case 1:
        return {503, "busy"};
      case 2:
        return {200, "{\"choices\":[{\"te"};
      case 3:
        return {200, "{\"choi", 0, true};
      default:
        return Completion(body);
    }
  }));
  const auto engine = Open(server);
  EXPECT_EQ(Run(engine.get(), {Question(3)}).at(3).text.size(), 8u);
  EXPECT_EQ(server.requests(), 1 + 5);
}

// What is asked for fits into far less than a server may send.
TEST_F(ServerEngine, AnAnswerIsNotLongerThanWhatWasAskedFor) {
  std::atomic<int> calls{0};
  TinyServer server(Serving([&](const std::string& body) -> TinyReply {
    return calls++ == 0 ? Completion(body) : TinyReply{200, std::string(1 << 20, ' ')};
  }));
  const auto engine = Open(server, Json{{"retries", 0}});
  EXPECT_THAT(CaughtText([&] { Run(engine.get(), {Question(5)}); }, ErrorKind::kInfrastructure),
              HasSubstr("no answer after 1 attempts"));
}

TEST_F(ServerEngine, GivesUpAfterSoManyAttempts) {
  std::atomic<int> calls{0};
  TinyServer server(Serving([&](const std::string& body) -> TinyReply {
    return calls++ == 0 ? Completion(body)
                        : TinyReply{500, R"({"error":{"message":"out of memory"}})"};
  }));
  const auto engine = Open(server, Json{{"retries", 1}});
  const std::string message = CaughtText([&] { Run(engine.get(), {Question(5), Question(6)}); },
                                         ErrorKind::kInfrastructure);
  EXPECT_THAT(message, HasSubstr("no answer after 2 attempts: status 500: out of memory"));
  EXPECT_THAT(message, HasSubstr(server.url()));
  EXPECT_EQ(engine->pending(), 0u);
}

TEST_F(ServerEngine, AServerThatChangesItsModelIsNotScored) {
  std::atomic<int> calls{0};
  TinyServer server(Serving([&](const std::string& body) -> TinyReply {
    Json reply = test::ToyCompletion(ParseJson(body, "request"), Fault::kNone);
    reply["model"] = calls++ < 2 ? "toy" : "toy-next";
    return {200, ToLine(reply)};
  }));
  const auto engine = Open(server, Json{{"retries", 0}});
  EXPECT_EQ(Run(engine.get(), {Question(5)}).size(), 1u);
  EXPECT_THAT(CaughtText([&] { Run(engine.get(), {Question(6)}); }, ErrorKind::kInfrastructure),
              HasSubstr("of the model 'toy-next', its first reply was of 'toy'"));
}

TEST_F(ServerEngine, ARequestThatIsRefusedIsNamed) {
  std::atomic<int> calls{0};
  TinyServer server(Serving([&](const std::string& body) -> TinyReply {
    return calls++ == 0 ? Completion(body) : TinyReply{400, R"({"detail":"prompt too long"})"};
  }));
  const auto engine = Open(server);
  const std::string message = RefusalOf([&] { Run(engine.get(), {Question(5)}); });
  EXPECT_THAT(message, HasSubstr("document 5"));
  EXPECT_THAT(message, HasSubstr("status 400: prompt too long"));
}

TEST_F(ServerEngine, AServerThatTakesNoTokensIsNotAskedAgain) {
  TinyServer server(
      Serving([](const std::string&) { return TinyReply{400, R"({"detail":"no string"})"}; }));
  const std::string message = RefusalOf([&] { Open(server, Json{{"prompt", "tokens"}}); });
  EXPECT_THAT(message, HasSubstr("refused a first request with status 400: no string"));
  EXPECT_THAT(message, HasSubstr("`prompt: text`"));
}

TEST_F(ServerEngine, AServerThatHangsGivesAnErrorAndNotAHang) {
  TinyServer server(Serving([&](const std::string& body) -> TinyReply {
    // the warm-up's request
    if (body.find("hello world") == std::string::npos) return Completion(body);
    return {200, "{}", 600 * 1000};
  }));
  const auto engine = Open(server, Json{{"request_seconds", 1}});
  const int64_t begin = MonotonicMicros();
  EXPECT_THAT(CaughtText([&] { Run(engine.get(), {Question(1)}); }, ErrorKind::kInfrastructure),
              HasSubstr("2 attempts"));
  EXPECT_LT(MonotonicMicros() - begin, 300'000'000);
}

TEST_F(ServerEngine, NobodyListening) {
  TinyServer unused(Serving([](const std::string& body) { return Completion(body); }));
  const std::string url = fmt::format("http://127.0.0.1:{}", server::FreePort());
  EXPECT_THAT(
      CaughtText([&] { Open(unused, Json{{"base_url", url + "/v1/"}, {"ready_seconds", 0.5}}); },
                 ErrorKind::kInfrastructure),
      HasSubstr(url + ": not ready after"));
}

TEST_F(ServerEngine, WaitsUntilTheServerIsHealthy) {
  std::atomic<int> probes{0};
  TinyServer server([&](const std::string& path, const std::string& body) -> TinyReply {
    if (path == "/health") return {probes++ < 3 ? 503 : 200, "{}"};
    if (path == "/v1/models") return {200, R"({"data":[{"id":"toy"}]})"};
    return Completion(body);
  });
  const auto engine = Open(server);
  EXPECT_GE(probes, 4);
  EXPECT_EQ(engine->Info().max_length, 512);  // from config.json, since the server gives none
}

TEST_F(ServerEngine, WithoutAHealthPageTheModelListWillDo) {
  TinyServer server([&](const std::string& path, const std::string& body) -> TinyReply {
    if (path == "/v1/models") return {200, R"({"data":[{"id":"toy"}]})"};
    return path == "/v1/completions" ? Completion(body) : TinyReply{404, ""};
  });
  EXPECT_EQ(Open(server)->Info().version, "toy");
}

TEST_F(ServerEngine, StopStringsAreCutHereToo) {
  TinyServer server(Serving([](const std::string&) -> TinyReply {
    return {200, R"({"choices":[{"text":" 42\nQ: next","finish_reason":"length"}]})"};
  }));
  const auto engine = Open(server);
  Request request = Question(1);
  request.sampling.until = {"a", "b", "c", "d", "\n"};  // the fifth is not sent
  const Generation answer = Run(engine.get(), {request}).at(1);
  EXPECT_EQ(answer.text, " 42");
  EXPECT_EQ(answer.finish, FinishReason::kStop);
}

TEST_F(ServerEngine, LongPromptsAreCutFromTheLeftAndCounted) {
  std::string prompt;
  TinyServer server(Serving([&](const std::string& body) {
    prompt = ParseJson(body, "x")["prompt"].dump();
    return Completion(body);
  }));
  for (const char* form : {"text", "tokens"}) {
    const auto engine =
        Open(server, Json{{"prompt", form}, {"max_length", 20}, {"scoring", false}});
    const Generation answer = Run(engine.get(), {Question(1, "abcdefghijklmnopqrst")}).at(1);
    EXPECT_EQ(answer.truncated, 8);
    EXPECT_EQ(answer.tokens_in, 12);
    EXPECT_EQ(prompt, std::string(form) == "text"
                          ? "\"ijklmnopqrst\""
                          : "[105,106,107,108,109,110,111,112,113,114,115,116]");
    Request hopeless = Question(2);
    hopeless.sampling.max_gen_toks = 20;
    EXPECT_THAT(RefusalOf([&] { engine->Submit(9, hopeless); }),
                HasSubstr("nothing of the prompt is left"));
  }
}

TEST_F(ServerEngine, ScoresWhenTheSelfTestPasses) {
  TinyServer server(Serving([](const std::string& body) { return Completion(body); }));
  const auto engine = Open(server, Json{{"prompt", "tokens"}});
  ASSERT_EQ(engine->LoadReport()["scoring"]["offered"], true) << engine->LoadReport();
  EXPECT_EQ(engine->Info().kinds.size(), 3u);
  Request request = Question(4, "the cat");
  request.kind = RequestKind::kLoglikelihood;
  request.continuation = " sat";
  request.continuation_tokens = {' ', 's', 'a', 't'};
  const Generation answer = Run(engine.get(), {request}).at(4);
  double expected = 0;
  std::vector<int> context(request.context_tokens.begin(), request.context_tokens.end());
  for (const int token : request.continuation_tokens) {
    expected += test::ToyLogprob(context, token);
    context.push_back(token);
  }
  EXPECT_DOUBLE_EQ(answer.loglikelihood, expected);
  EXPECT_EQ(answer.tokens_out, 4);
  EXPECT_EQ(answer.kind, RequestKind::kLoglikelihood);
}

TEST_F(ServerEngine, DoesNotScoreWhenTheSelfTestFailsAndSaysWhy) {
  for (const Fault fault : {Fault::kChance, Fault::kConstant, Fault::kNoLogprobs}) {
    TinyServer server(
        Serving([fault](const std::string& body) { return Completion(body, fault); }));
    const auto engine = Open(server, Json{{"prompt", "tokens"}});
    EXPECT_EQ(engine->Info().kinds, std::vector<RequestKind>{RequestKind::kGenerateUntil});
    const Json scoring = engine->LoadReport()["scoring"];
    EXPECT_EQ(scoring["offered"], false);
    EXPECT_FALSE(scoring["reason"].get<std::string>().empty());
    Request request = Question(4);
    request.kind = RequestKind::kLoglikelihood;
    EXPECT_THAT(RefusalOf([&] { engine->Submit(1, request); }),
                HasSubstr(scoring["reason"].get<std::string>()));
  }
}

TEST_F(ServerEngine, WrongSettingsAreNamed) {
  const std::pair<Json, const char*> cases[] = {
      {Json::object(), "either `command`"},
      {Json{{"base_url", "http://x"}, {"command", {"y"}}}, "either `command`"},
      {Json{{"base_url", "http://x"}, {"promt", "text"}}, "did you mean 'prompt'?"},
      {Json{{"base_url", "http://x"}, {"prompt", "speech"}}, "expected text or tokens"},
      {Json{{"base_url", "http://x"}, {"api_key_env", "EVALD_NO_SUCH_KEY"}},
       "environment variable"},
      {Json{{"command", "vllm serve"}}, "'command'"},
      {Json{{"base_url", "http://x"}, {"health_path", "@evil.example/"}}, "a path on the server"},
      {Json{{"base_url", "http://known@evil.example"}}, "and nothing else in it"},
      {Json{{"base_url", "http://x"}, {"request_seconds", 0}}, "'request_seconds'"},
  };
  for (const auto& [settings, message] : cases) {
    const Json copy = settings;
    EXPECT_THAT(
        CaughtText([&] { MakeServerEngine({"openai", copy, "cpu:0", 1, 1}); }, ErrorKind::kUsage),
        HasSubstr(message));
  }
}

// A server program: Python's http.server, which answers "x" to everything and dies when asked to.
constexpr const char* kServer = R"(
import http.server, json, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *args): pass
    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.reply({'data': []})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        flag = sys.argv[2]
        if 'die' in body['prompt'] and not os.path.exists(flag):
            open(flag, 'w').close()
            os._exit(3)
        self.reply({'choices': [{'text': body['model'][-8:] + os.environ.get('MARK', ''),
                                 'finish_reason': 'stop'}]})
open(sys.argv[2] + '.pid', 'w').write(str(os.getpid()))
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
)";

class StartedServer : public ServerEngine {
 protected:
  StartedServer() { std::ofstream(folder_.path() / "server.py") << kServer; }
  Json Settings() {
    return {{"command", {"/usr/bin/python3", folder_.path() / "server.py", "{port}", Flag()}},
            {"environment", {{"MARK", "!"}}}};
  }
  std::string Flag() { return folder_.path() / "flag"; }
  pid_t ServerPid() { return std::stoi(ReadFile(Flag() + ".pid")); }

  static bool GoneWithin(pid_t pid, int milliseconds) {
    for (int waited = 0; waited < milliseconds; waited += 10) {
      if (::kill(pid, 0) != 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
};

TEST_F(StartedServer, IsStartedAndEndedWithTheEngine) {
  pid_t pid = 0;
  {
    const auto engine = MakeServerEngine({"openai", Settings(), "cpu:0", 1, 1});
    engine->Load(folder_.path());
    const std::string folder = folder_.path();
    EXPECT_EQ(Run(engine.get(), {Question(1)}).at(1).text, folder.substr(folder.size() - 8) + "!");
    EXPECT_EQ(engine->LoadReport()["started_here"], true);
    pid = ServerPid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_TRUE(GoneWithin(pid, 60'000));
}

TEST_F(StartedServer, IsStartedAgainAndItsRequestsTooWhenItDies) {
  const auto engine = MakeServerEngine({"openai", Settings(), "cpu:0", 1, 1});
  engine->Load(folder_.path());
  const auto answers = Run(engine.get(), {Question(1), Question(2, "die"), Question(3)});
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_TRUE(fs::exists(Flag()));
}

TEST_F(StartedServer, IsNotStartedAgainForEver) {
  Json settings = Settings();
  settings["restarts"] = 0;
  const auto engine = MakeServerEngine({"openai", settings, "cpu:0", 1, 1});
  engine->Load(folder_.path());
  EXPECT_THAT(
      CaughtText([&] { Run(engine.get(), {Question(2, "die")}); }, ErrorKind::kInfrastructure),
      HasSubstr("the server ended (exit status 3)"));
}

TEST_F(StartedServer, ItsLogIsInTheErrorWhenItDoesNotComeUp) {
  const Json settings{{"command", {"/bin/sh", "-c", "echo CUDA out of memory >&2; exit 7"}}};
  const auto engine = MakeServerEngine({"openai", settings, "cpu:0", 1, 1});
  const std::string message =
      CaughtText([&] { engine->Load(folder_.path()); }, ErrorKind::kInfrastructure);
  EXPECT_THAT(message, HasSubstr("ended before it was ready (exit status 7)"));
  EXPECT_THAT(message, HasSubstr("CUDA out of memory"));
  const Json absent{{"command", {"/no/such/server"}}};
  EXPECT_THAT(
      CaughtText([&] { MakeServerEngine({"openai", absent, "cpu:0", 1, 1})->Load(folder_.path()); },
                 ErrorKind::kInfrastructure),
      HasSubstr("exit status 127"));
}

TEST_F(StartedServer, DiesWithAProcessThatIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto engine = MakeServerEngine({"openai", Settings(), "cpu:0", 1, 1});
    engine->Load(folder_.path());
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(GoneWithin(ServerPid(), 60'000));
}

}  // namespace
}  // namespace evald

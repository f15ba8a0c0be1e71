#include "worker/endpoint/endpoint.h"

#include <utility>

#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "worker/endpoint/answering.h"
#include "worker/endpoint/tokenizer_calls.h"

namespace evald::endpoint {
namespace {

using RequestPtr = std::shared_ptr<const http::Request>;

constexpr uint64_t kBodyBytesMax = 8 << 20;
constexpr size_t kValuesMax = size_t{2} << 20;  // of a body; bounds the memory of parsing
constexpr int kDeskThreads = 2;
constexpr double kRequestsPerSecond = 100'000;  // callers hold the key

Json BodyOf(const http::Request& request) {
  try {
    return ParseJson(request.body, "the body", kValuesMax);
  } catch (const Error& e) {
    throw ApiError(400, e.what(), "", "invalid_json");
  }
}

Json ModelCard(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "evald"},
          {"max_model_len", model.max_length}};
}

http::Response ListModels(const ServedModel& model) {
  return http::JsonResponse(
      200, ToLine({{"object", "list"}, {"data", Json::array({ModelCard(model)})}}));
}

http::Response OneModel(const ServedModel& model, const http::Request& request) {
  const std::string& asked = request.parameters.at("model");
  if (model.Answers(asked)) return http::JsonResponse(200, ToLine(ModelCard(model)));
  return ErrorResponse(
      ApiError(404, "model '" + asked + "' is not served", "model", "model_not_found"));
}

}  // namespace

struct Endpoint::State {
  State(Engine* engine, ServedModel model_in, std::function<void()> broken)
      : model(std::move(model_in)),
        queue(engine, {}, std::move(broken)),
        scores(&queue, model.deterministic),
        desk(kDeskThreads) {}

  http::Router Routes();
  void AddPost(http::Router* router, const std::string& path,
               std::function<void(const Json& body, const http::Responder& answer)> work);
  void Begin(Call call, const http::Responder& answer);

  ServedModel model;
  EngineQueue queue;
  PromptScores scores;
  Desk desk;
  std::unique_ptr<http::Server> server;
};

// A call's body is read on a thread of the desk.
void Endpoint::State::AddPost(
    http::Router* router, const std::string& path,
    std::function<void(const Json& body, const http::Responder& answer)> work) {
  const auto handle = [work = std::move(work)](const RequestPtr& request,
                                               const http::Responder& answer) {
    try {
      work(BodyOf(*request), answer);
    } catch (const ApiError& e) {
      answer(ErrorResponse(e));
    } catch (const Error& e) {
      answer(ErrorResponse(ApiErrorFor(e)));
    } catch (const std::exception& e) {
      log::Error("{}: {}", request->route, e.what());
      answer(ErrorResponse(ApiErrorFor(Error(ErrorKind::kInternal, e.what()))));
    }
  };
  router->Add({"POST", path, http::Role::kRead,
               [this, handle](const RequestPtr& request, const http::Responder& answer) {
                 desk.Post([=] { handle(request, answer); });
               },
               kBodyBytesMax});
}

void Endpoint::State::Begin(Call call, const http::Responder& answer) {
  const Services services{&model, &queue, &scores, &desk,
                          [this](std::function<void()> work) { server->Post(std::move(work)); }};
  std::make_shared<Answering>(services, std::move(call), answer)->Start();
}

http::Router Endpoint::State::Routes() {
  http::Router router;
  router.Add(
      {"GET", "/health", http::Role::kNone, [](const RequestPtr&, const http::Responder& answer) {
         answer(http::JsonResponse(200, "{}"));
       }});
  router.Add(
      {"GET", "/v1/models", http::Role::kRead,
       [this](const RequestPtr&, const http::Responder& answer) { answer(ListModels(model)); }});
  router.Add({"GET", "/v1/models/{model...}", http::Role::kRead,
              [this](const RequestPtr& request, const http::Responder& answer) {
                answer(OneModel(model, *request));
              }});
  router.Add({"GET", "/tokenizer_info", http::Role::kRead,
              [this](const RequestPtr&, const http::Responder& answer) {
                answer(http::JsonResponse(200, ToLine(TokenizerInfo(model))));
              }});
  AddPost(&router, "/v1/completions", [this](const Json& body, const http::Responder& answer) {
    Begin(ReadCompletionCall(body, model), answer);
  });
  AddPost(&router, "/v1/chat/completions", [this](const Json& body, const http::Responder& answer) {
    Begin(ReadChatCall(body, model), answer);
  });
  AddPost(&router, "/tokenize", [this](const Json& body, const http::Responder& answer) {
    answer(http::JsonResponse(200, ToLine(Tokenize(body, model))));
  });
  AddPost(&router, "/detokenize", [this](const Json& body, const http::Responder& answer) {
    answer(http::JsonResponse(200, ToLine(Detokenize(body, model))));
  });
  return router;
}

Endpoint::Endpoint(Engine* engine, ServedModel model, const EndpointOptions& options,
                   std::function<void()> broken) {
  if (options.key.empty() && options.socket.empty())
    throw Error(ErrorKind::kInternal, "an endpoint on TCP needs a key");
  http::ServerOptions http;
  http.port = options.port;
  http.socket = options.socket;
  http.time = options.time;
  http.request.body_bytes_max = kBodyBytesMax;
  http.connections_max = http.connections_per_client_max = options.connections_max;
  // All callers share the one key.
  http.streams_per_token_max = http.calls_per_token_max = options.connections_max;
  http.requests_per_second = http.requests_burst = kRequestsPerSecond;
  http.problem_answer = ErrorResponseFor;
  if (!options.key.empty()) http.tokens.Add("key", http::Role::kRead, options.key);
  state_ = std::make_unique<State>(engine, std::move(model), std::move(broken));
  state_->server = std::make_unique<http::Server>(http, state_->Routes());
}

Endpoint::~Endpoint() { Stop(); }

const std::string& Endpoint::url() const { return state_->server->url(); }
uint16_t Endpoint::port() const { return state_->server->port(); }

void Endpoint::Stop() {
  if (!state_->server) return;
  state_->queue.Stop();
  state_->desk.Stop();
  state_->server->Stop(std::chrono::milliseconds(1000));
}

}  // namespace evald::endpoint

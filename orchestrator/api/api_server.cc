#include "orchestrator/api/api_server.h"

#include <fmt/format.h>

#include <atomic>
#include <latch>
#include <mutex>

#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "orchestrator/api/events.h"
#include "orchestrator/api/routes.h"
#include "orchestrator/api/samples.h"
#include "orchestrator/fleet/fair_threads.h"

namespace evald {
namespace api {

namespace {
// The same for files and for what takes the processor
constexpr FairThreads::Limits kTurns{
    .threads = 2, .waiting_max = 2048, .waiting_per_user_max = 256};
}  // namespace

Json FindRun(const Context& context, const http::Request& request) {
  const std::string& id = request.parameters.at("run");
  std::optional<Json> run = context.service->Run(id);
  if (!run)
    throw http::ProblemError(
        {404, "not-found",
         fmt::format("no run has the id '{}'", PrintableLine(Shortened(id, 200)))});
  return std::move(*run);
}

void SetUser(const http::Request& request, std::string* user) {
  const std::string& holder = request.principal.name;
  if (holder.empty()) return;
  if (user->empty()) *user = holder;
  if (*user != holder && request.principal.role != http::Role::kAdmin) {
    throw http::ProblemError(
        {403, "user",
         fmt::format("the token '{}' may not submit for the user '{}'", holder, *user)});
  }
}

void RequireOwner(const http::Request& request, const std::string& what, const std::string& user) {
  const http::Principal& who = request.principal;
  if (who.name.empty() || who.role == http::Role::kAdmin || user == who.name) return;
  throw http::ProblemError(
      {403, "owner", fmt::format("the {} belongs to another user than '{}'", what, who.name)});
}

void RequirePriority(const Context& context, const http::Request& request, int64_t priority) {
  const int most = context.options->submit_priority_max;
  if (request.principal.role != http::Role::kSubmit || priority <= most) return;
  throw http::ProblemError(
      {403, "priority",
       fmt::format("priority {}: the role submit may ask for at most {}", priority, most),
       "ask for less, or have an admin raise it"});
}

http::Response QuotaAnswer(const OverQuota& over) {
  const char* again = over.what == "judging" ? "5" : "60";
  return http::ProblemResponse(
      {429, over.what, over.message, over.remedy, "", {{"Retry-After", again}}});
}

http::Response JsonAnswer(int status, const Json& value) {
  return http::JsonResponse(status, ToLine(value) + "\n");
}

http::Response AnswerFor(const std::exception& error) {
  if (const auto* problem = dynamic_cast<const http::ProblemError*>(&error))
    return http::ProblemResponse(problem->problem());
  if (const auto* known = dynamic_cast<const Error*>(&error);
      known != nullptr && known->kind() != ErrorKind::kInternal) {
    return http::ProblemResponse(http::ProblemFor(*known));
  }
  log::Error("api: {}", error.what());
  return http::ProblemResponse({500, "internal", "an internal error; the service's log says more"});
}

namespace {

// Answers a request that `taken` says is not taken.
void AnswerUntaken(Taken taken, const http::Responder& answer) {
  if (taken == Taken::kUserIsFull) {
    answer(http::ProblemResponse(
        {429,
         "rate",
         fmt::format("more than {} requests of this token wait", kTurns.waiting_per_user_max),
         "",
         "",
         {{"Retry-After", "1"}}}));
  }
  if (taken == Taken::kFull) {
    answer(http::ProblemResponse(
        {503, "busy", "too many requests wait", "", "", {{"Retry-After", "1"}}}));
  }
}

void PostStep(FairThreads* threads, const std::string& user, const http::Responder& answer,
              const std::shared_ptr<FileWork>& work) {
  const auto step = [=] {
    if (!answer.wanted()) return;
    try {
      std::optional<http::Response> response = (*work)();
      if (response) return answer(std::move(*response));
    } catch (const std::exception& error) {
      return answer(AnswerFor(error));
    }
    PostStep(threads, user, answer, work);
  };
  AnswerUntaken(threads->Post(user, step, nullptr), answer);
}

}  // namespace

void InBackground(const Context& context, const std::string& user, const http::Responder& answer,
                  FileWork work) {
  PostStep(context.files, user, answer, std::make_shared<FileWork>(std::move(work)));
}

void InTurn(const Context& context, const RequestPtr& request, const http::Responder& answer,
            std::function<void()> work) {
  const bool reads = request->method == "GET" || request->method == "HEAD";
  const auto answering = [answer, reads, work = std::move(work)] {
    if (reads && !answer.wanted()) return;
    try {
      work();
    } catch (const std::exception& error) {
      answer(AnswerFor(error));
    }
  };
  AnswerUntaken(context.turns->Post(request->principal.name, answering, nullptr), answer);
}

namespace {

http::Router MakeRouter(const Context* context) {
  http::Router router;
  for (const auto add : {AddRunRoutes, AddEventRoutes, AddResultRoutes, AddSampleRoutes,
                         AddFleetRoutes, AddWatchRoutes, AddLogRoutes, AddHealthRoutes,
                         AddMetricsRoutes, AddAgentRoutes, AddPageRoutes}) {
    add(&router, context);
  }
  return router;
}

}  // namespace
}  // namespace api

namespace {

// Stands between the service's thread, which may just be calling, and a server that ends.
struct Gate {
  std::mutex mutex;
  http::Server* server = nullptr;
  api::EventHub* hub = nullptr;
  std::atomic<bool> polling{false};
};

// Looks at the service once for many events.
void PollSoon(const std::shared_ptr<Gate>& gate) {
  if (gate->polling.exchange(true)) return;
  const std::lock_guard lock(gate->mutex);
  if (gate->server == nullptr) return;
  gate->server->Post([gate] {
    gate->polling = false;
    gate->hub->Poll();
  });
}

}  // namespace

struct ApiServer::State {
  State(RunService* service, ApiOptions given)
      : options(std::move(given)),
        hub(service),
        files("http files", nullptr, api::kTurns),
        turns("api", nullptr, api::kTurns) {
    webhooks = std::make_unique<Webhooks>(service, options.webhooks);
    context.service = service;
    context.files = &files;
    context.turns = &turns;
    context.hub = &hub;
    context.samples = &samples;
    context.options = &options;
    context.http_statistics = [this] {
      started.wait();  // a request may come before the constructor has ended
      return server->statistics();
    };
    context.webhook_statistics = [this] { return webhooks->statistics(); };
  }

  ApiOptions options;
  api::SampleStore samples;
  api::EventHub hub;
  api::Context context;
  FairThreads files, turns;  ///< their work answers by itself, so no loop is called
  std::unique_ptr<Webhooks> webhooks;
  std::unique_ptr<http::Server> server;
  std::latch started{1};
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::shared_ptr<void> subscription;
};

ApiServer::ApiServer(RunService* service, ApiOptions options)
    : state_(std::make_unique<State>(service, std::move(options))) {
  State* state = state_.get();
  state->server =
      std::make_unique<http::Server>(state->options.http, api::MakeRouter(&state->context));
  state->started.count_down();
  state->gate->server = state->server.get();
  state->gate->hub = &state->hub;
  state->subscription = service->OnEvents([gate = state->gate] { PollSoon(gate); });
  PollSoon(state->gate);
}

ApiServer::~ApiServer() { Stop(); }

const std::string& ApiServer::url() const { return state_->server->url(); }
uint16_t ApiServer::port() const { return state_->server->port(); }

void ApiServer::Stop() {
  state_->subscription.reset();
  {
    const std::lock_guard lock(state_->gate->mutex);
    state_->gate->server = nullptr;
  }
  state_->server->Stop();
  state_->webhooks->Stop();
}

}  // namespace evald

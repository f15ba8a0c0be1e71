#include "orchestrator/api/agent_server.h"

#include "orchestrator/api/routes.h"
#include "orchestrator/fleet/fair_threads.h"

namespace evald {
namespace {

constexpr FairThreads::Limits kAgentTurns{
    .threads = 2, .waiting_max = 2048, .waiting_per_user_max = 256};

http::Router AgentRouter(const api::Context* context) {
  http::Router router;
  api::AddAgentRoutes(&router, context);
  return router;
}

}  // namespace

struct AgentServer::State {
  explicit State(AgentServerOptions given) : files("agent files", nullptr, kAgentTurns) {
    options.http = std::move(given.http);
    options.connect_agent = std::move(given.connect_agent);
    options.agent_files = given.agent_files;
    context.files = &files;
    context.turns = &files;
    context.options = &options;
    server.emplace(options.http, AgentRouter(&context));
  }

  ApiOptions options;
  api::Context context;
  FairThreads files;
  std::optional<http::Server> server;
};

AgentServer::AgentServer(AgentServerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

AgentServer::~AgentServer() { Stop(); }

uint16_t AgentServer::port() const { return state_->server->port(); }

void AgentServer::Stop() { state_->server->Stop(); }

}  // namespace evald

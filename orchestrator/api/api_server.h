#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http_server/server.h"
#include "orchestrator/api/webhooks.h"
#include "orchestrator/service/run_service.h"
#include "orchestrator/service/watch_registry.h"

namespace evald {

class AgentFiles;

/// A file of the web page, embedded in this program.
struct WebAsset {
  std::string path;          ///< "/" or "/assets/app.js"
  std::string content_type;  ///< "text/html; charset=utf-8"
  std::string_view bytes;    ///< lives as long as the program
};

struct ApiOptions {
  http::ServerOptions http;
  std::vector<WebAsset> assets;
  std::vector<WebhookTarget> webhooks;
  WatchRegistry* watches = nullptr;  ///< outlives the server; nullptr: the service keeps no watches
  std::filesystem::path log_dir;     ///< logs of worker and metric processes; "" serves no logs
  int submit_priority_max = 50;      ///< the highest priority that the role submit may ask for
  std::string version = "0.1.0";
  /// Makes the tunnel for an agent's connection; null: this service takes no agents. Called on the
  /// HTTP server's thread.
  std::function<std::shared_ptr<http::Tunnel>(const std::string& token)> connect_agent;
  /// Files that agents may fetch and give; outlives the server
  const AgentFiles* agent_files = nullptr;
};

/// The REST interface of docs/openapi.json over a RunService. It has its own threads: one for HTTP,
/// two that read files, one for webhooks. It never waits for the service's thread.
class ApiServer {
 public:
  /// Serves from now on. `service` must outlive this. Throws Error(kUsage) like http::Server.
  ApiServer(RunService* service, ApiOptions options);
  /// Calls Stop().
  ~ApiServer();

  const std::string& url() const;
  uint16_t port() const;
  /// Ends all of its threads. Requests under way get two seconds. Do not call it from the service's
  /// callbacks.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald

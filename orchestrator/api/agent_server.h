#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http_server/server.h"

namespace evald {

class AgentFiles;

struct AgentServerOptions {
  http::ServerOptions http;
  /// Makes the tunnel for an agent's connection. Called on the server's thread.
  std::function<std::shared_ptr<http::Tunnel>(const std::string& token)> connect_agent;
  /// Files that agents may fetch and give; outlives the server
  const AgentFiles* agent_files = nullptr;
};

/// A listener for agents alone: their connections and the files of their work (docs/protocol.md),
/// and nothing else of the REST interface. So agents of other hosts can come while that interface
/// stays on loopback. One thread for HTTP, two that read and write files.
class AgentServer {
 public:
  /// Serves from now on. Throws Error(kUsage) like http::Server.
  explicit AgentServer(AgentServerOptions options);
  ~AgentServer();

  uint16_t port() const;
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "http_server/server.h"
#include "worker/endpoint/served_model.h"
#include "worker/engine/engine.h"

namespace evald::endpoint {

struct EndpointOptions {
  uint16_t port = 0;             ///< on 127.0.0.1; 0: any free one
  std::filesystem::path socket;  ///< a Unix socket instead, for this user only
  /// The key that callers send ("Authorization: Bearer <key>"); must not be empty without `socket`
  std::string key;
  http::TimeLimits time;
  size_t connections_max = 2048;
};

/// The OpenAI-compatible API of one engine with a loaded checkpoint (docs/endpoint.md): an HTTP
/// server on a thread of its own, the engine's thread, and two that read calls and write answers.
class Endpoint {
 public:
  /// Serves from then on. `engine` has loaded the checkpoint of `model`; it outlives this, and only
  /// this calls it. `broken` is called, on the engine's thread, if the engine can answer nothing
  /// any more. Throws Error(kUsage) if the address is taken.
  Endpoint(Engine* engine, ServedModel model, const EndpointOptions& options,
           std::function<void()> broken);
  /// Calls Stop().
  ~Endpoint();

  /// "http://127.0.0.1:8000" or "unix:/path".
  const std::string& url() const;
  uint16_t port() const;

  /// Ends calls under way with an error, and then the threads.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald::endpoint

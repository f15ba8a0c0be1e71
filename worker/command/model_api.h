#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "worker/command/key_gate.h"
#include "worker/endpoint/endpoint.h"
#include "worker/engine/engine.h"

namespace evald::command {

/// The OpenAI-compatible API of the model that an engine has loaded, on a port of 127.0.0.1 with a
/// key. An engine that asks a server gives that server's own API (through a KeyGate if it listens
/// on a Unix socket); any other answers through an endpoint of its own, which has the engine to
/// itself until this ends. The engine has no pending request.
class ModelApi {
 public:
  /// `checkpoint`: the folder that is loaded. Throws Error(kInput) if the checkpoint has no
  /// tokenizer that an endpoint could use, and what Engine::Api throws.
  ModelApi(Engine* engine, const std::filesystem::path& checkpoint);

  /// With /v1 at its end.
  const std::string& base_url() const { return base_url_; }
  const std::string& key() const { return key_; }
  /// The name by which calls ask for the model.
  const std::string& model() const { return model_; }
  /// Whether the model still answers: its engine is whole, its server runs.
  bool alive() const;

 private:
  void Take(ServedApi api);
  void Serve(Engine* engine, const std::filesystem::path& checkpoint);

  std::string base_url_, key_, model_;
  std::function<bool()> server_alive_;
  std::atomic<bool> broken_{false};
  std::optional<KeyGate> gate_;
  std::optional<endpoint::Endpoint> endpoint_;  ///< last: it uses broken_
};

}  // namespace evald::command

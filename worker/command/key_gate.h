#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace evald::command {

/// A port of 127.0.0.1 in front of a server that listens on a Unix socket, for clients that cannot
/// use one. Any user of the host may connect to a port, so a connection is passed on only if its
/// first request carries the key ("Authorization: Bearer <key>"); else it is answered 401 and
/// closed. A server's own key would not do: vLLM checks it for paths below /v1 only.
class KeyGate {
 public:
  /// Serves from then on, on a thread of its own. Throws Error(kInfrastructure).
  KeyGate(std::filesystem::path socket, std::string key);
  /// Closes all connections.
  ~KeyGate();

  uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether the head of an HTTP request carries the key.
bool CarriesKey(std::string_view head, std::string_view key);

}  // namespace evald::command

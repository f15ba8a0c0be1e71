#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/command_line.h"
#include "evald/error.h"
#include "evald/json.h"
#include "http_client/client.h"

namespace evald::cli {

/// The address of the service, and the caller's token.
struct ClientOptions {
  std::string server;             ///< "http://127.0.0.1:8642"
  std::string token;              ///< "": sends none
  std::filesystem::path ca_file;  ///< PEM; trusted in place of the system's certificates
};

/// Flags of the commands that talk to a service. Empty ones come from the environment:
/// EVALD_SERVER, EVALD_TOKEN_FILE (or EVALD_TOKEN, the token itself), EVALD_CA_FILE.
struct ClientFlags {
  std::string server;
  std::string token_file;
  std::string ca_file;
};
void AddClientFlags(Command command, ClientFlags* flags);
/// Throws Error(kUsage) for an invalid URL, a token file that cannot be read, or a token that would
/// cross a network unencrypted.
ClientOptions ReadClientFlags(const ClientFlags& flags);

/// One event of a stream: {"sequence","run","type","data"} (docs/openapi.json, Event).
using EventVisitor = std::function<bool(const Json& event)>;

/// Talks to a service over REST. A refusal is thrown as Error with the words of the
/// problem document: kUsage for a mistake of the caller, kInfrastructure if another try may succeed
/// or if there is no answer. One thread at a time.
class Client {
 public:
  explicit Client(ClientOptions options);

  Json Get(const std::string& path);
  std::string GetText(const std::string& path);
  /// With an idempotency key (docs/rest.md) the call is made again a few times if no answer comes,
  /// or a temporary refusal.
  Json Post(const std::string& path, const Json& body = nullptr, const std::string& key = "");
  Json Delete(const std::string& path);

  /// Calls `visit` for each event of the stream at `path` until it returns false or *stop is set.
  /// If the connection ends, it is made again and goes on after the last event (Last-Event-ID), so
  /// no event is missed or seen twice. Throws if the service refuses, or is away for longer than
  /// `patience_s`.
  void Follow(const std::string& path, const EventVisitor& visit, const std::atomic<bool>* stop,
              double patience_s = 60);

  const std::string& server() const { return options_.server; }

 private:
  http_client::Request Ask(const std::string& method, const std::string& path) const;
  http_client::Response Do(http_client::Request request, const http_client::RetryPolicy& retry);
  [[noreturn]] void Refuse(const http_client::Response& response) const;

  ClientOptions options_;
  http_client::Client http_;
};

}  // namespace evald::cli

#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald::cli {

/// Where the service is and who asks.
struct ClientOptions {
  std::string server;             ///< "http://127.0.0.1:8642"
  std::string token;              ///< "" sends none
  std::filesystem::path ca_file;  ///< PEM; trusted instead of the system's certificates
};

/// Flags of the commands that ask a service. What is empty comes from the environment:
/// EVALD_SERVER, EVALD_TOKEN_FILE (or EVALD_TOKEN, the token itself), EVALD_CA_FILE.
struct ClientFlags {
  std::string server;
  std::string token_file;
  std::string ca_file;
};
void AddClientFlags(Command command, ClientFlags* flags);
/// Throws Error(kUsage): a URL that is none, a token file that cannot be read, or a token that
/// would cross a network unencrypted.
ClientOptions ReadClientFlags(const ClientFlags& flags);

/// One event of a stream: {"sequence","run","type","data"} (docs/openapi.json, Event).
using EventVisitor = std::function<bool(const Json& event)>;

/// Asks a service over REST (libcurl). What the service refuses comes as Error with the problem
/// document's words: kUsage for what the caller did wrong, kInfrastructure for what is worth
/// another try, and when nobody answers. One thread at a time.
class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();

  Json Get(const std::string& path);
  std::string GetText(const std::string& path);
  Json Post(const std::string& path, const Json& body = nullptr,
            const std::vector<std::string>& headers = {});
  Json Delete(const std::string& path);

  /// Calls `visit` for each event of the stream at `path` until it returns false or *stop is set.
  /// When the connection ends it is made again and goes on after the last event seen
  /// (Last-Event-ID), so that none is missed or seen twice. Throws when the service refuses, or
  /// stays away for longer than `patience_s`.
  void Follow(const std::string& path, const EventVisitor& visit, const std::atomic<bool>* stop,
              double patience_s = 60);

  const std::string& server() const { return options_.server; }

 private:
  struct Reply {
    long status = 0;
    std::string body;
  };
  Reply Do(const std::string& method, const std::string& path, const std::string* body,
           const std::vector<std::string>& headers);
  [[noreturn]] void Refuse(const Reply& reply) const;

  ClientOptions options_;
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

/// Splits a stream of Server-Sent Events; fed bytes as they come.
class EventParser {
 public:
  struct Message {
    std::string id;
    std::string data;
  };
  /// Appends what is whole now to `messages`. Comments and other fields are passed over.
  void Feed(std::string_view bytes, std::vector<Message>* messages);

 private:
  void Line(std::string_view line, std::vector<Message>* messages);
  std::string input_;
  Message next_;
  bool has_data_ = false;
};

}  // namespace evald::cli

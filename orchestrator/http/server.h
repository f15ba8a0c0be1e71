#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/http/request_parser.h"
#include "orchestrator/http/router.h"
#include "orchestrator/http/statistics.h"
#include "orchestrator/http/token_auth.h"

namespace evald::http {

/// How long a client may take.
struct TimeLimits {
  std::chrono::milliseconds handshake{10'000};  ///< of TLS
  std::chrono::milliseconds idle{60'000};       ///< between requests, without a byte
  std::chrono::milliseconds header{10'000};     ///< from a request's first byte to its header's end
  std::chrono::milliseconds body{60'000};       ///< from there to the body's end
  std::chrono::milliseconds answer{
      120'000};  ///< until the handler answers; then the connection closes
  std::chrono::milliseconds write{30'000};  ///< for each piece of an answer (at most 64 KiB)
  std::chrono::milliseconds keep_alive{
      15'000};  ///< an event stream says at least this often that it lives
};

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< an IP address, or "localhost"
  uint16_t port = 0;                  ///< 0: any free one
  std::filesystem::path certificate;  ///< PEM chain; with `key` turns TLS (1.2 and 1.3) on
  std::filesystem::path key;          ///< PEM
  TokenAuth tokens;  ///< empty: this process's user and root are admin, others are refused
  std::vector<std::string>
      hosts;  ///< further names that the Host field may hold where no tokens are in force
  RequestLimits request;
  TimeLimits time;
  size_t connections_max = 1024;
  size_t connections_per_client_max = 512;
  /// Event streams. They also leave some connections of each address, and of all, to requests.
  /// Without tokens there is one user, and no bound.
  size_t streams_per_token_max = 256;
  double requests_per_second = 2000;  ///< per client address
  double requests_burst = 4000;
};

/// Whether `address` reaches no further than this machine.
bool IsLoopback(const std::string& address);

/// A small HTTP/1.1 server on one thread of its own, which runs the handlers too. Where no tokens
/// are in force, whoever connects must be of this process's user or root (peer_owner.h); all others
/// are answered 403, whatever they ask for. The server checks, before it reads a body: the Host
/// field (against DNS rebinding, where no tokens are in force), the request rate, the route, the
/// token's role, and for changing methods the Origin field (against other web pages). What a
/// handler throws is answered as a problem document.
class Server {
 public:
  /// Binds and listens; serves from then on. Throws Error(kUsage): the address is taken or not this
  /// machine's, certificate or key cannot be read, the address reaches beyond loopback without
  /// both TLS and tokens, or there are no tokens and the kernel cannot say who calls.
  Server(ServerOptions options, Router router);
  /// As Stop().
  ~Server();

  uint16_t port() const;
  /// "http://127.0.0.1:8080" or "https://…".
  const std::string& url() const;

  /// Runs `work` on the server's thread, soon; drops it once the server has stopped. Any thread.
  void Post(std::function<void()> work);
  /// Server's thread only.
  const Statistics& statistics() const;

  /// Takes no more connections, ends event streams, gives requests under way `grace` to end, closes
  /// the rest and ends the thread. Not from the server's thread.
  void Stop(std::chrono::milliseconds grace = std::chrono::milliseconds(2000));

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace evald::http

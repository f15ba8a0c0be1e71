#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http_server/problem.h"
#include "http_server/request_parser.h"
#include "http_server/router.h"
#include "http_server/statistics.h"
#include "http_server/token_auth.h"

namespace evald::http {

/// Time limits for clients.
struct TimeLimits {
  std::chrono::milliseconds handshake{10'000};  ///< of TLS
  std::chrono::milliseconds idle{60'000};       ///< between requests, without a byte
  std::chrono::milliseconds header{10'000};     ///< from a request's first byte to its header's end
  std::chrono::milliseconds body{60'000};       ///< from the header's end to the body's end
  /// For the handler's answer. If the handler takes longer, the connection closes.
  std::chrono::milliseconds answer{120'000};
  std::chrono::milliseconds write{30'000};  ///< for each piece of an answer (at most 64 KiB)
  /// An event stream sends something at least this often
  std::chrono::milliseconds keep_alive{15'000};
};

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< an IP address, or "localhost"
  uint16_t port = 0;                  ///< 0: any free port
  /// A Unix socket's path (unix_socket.h) instead of address and port; without TLS. With tokens or
  /// without, only this process's user and root may call.
  std::filesystem::path socket;
  std::filesystem::path certificate;  ///< PEM chain; with `key` turns TLS (1.2 and 1.3) on
  std::filesystem::path key;          ///< PEM
  /// empty: this process's user and root are admin, others are refused
  TokenAuth tokens;
  /// Further names that the Host field may hold if no tokens are in force
  std::vector<std::string> hosts;
  RequestLimits request;
  TimeLimits time;
  size_t connections_max = 1024;
  size_t connections_per_client_max = 512;
  /// Event streams of one token. In addition, all streams together leave some connections free for
  /// requests, of each client address and of the whole server. Without tokens there is no bound,
  /// since there is only one user.
  size_t streams_per_token_max = 256;
  /// Calls of one token under way, each of which keeps a connection: requests whose body is to
  /// come, answers that are to be read, tunnels and event streams. So one token never takes all
  /// connections. Without tokens there is no bound.
  size_t calls_per_token_max = 384;
  double requests_per_second = 2000;  ///< per token; without a known one, per client address
  double requests_burst = 4000;
  /// Of the files in all answers together (FileBody); 0: as fast as clients take them
  uint64_t file_bytes_per_second = 0;
  /// The form of an error's answer
  std::function<Response(const Problem&)> problem_answer = ProblemResponse;
};

/// Whether `address` is reachable from this machine only.
bool IsLoopback(const std::string& address);

/// A small HTTP/1.1 server on one thread of its own, which also runs the handlers. If no tokens are
/// in force, the caller must be this process's user or root (peer_owner.h); all others are answered
/// 403, whatever they ask for. Before it reads a body, the server checks the Host field (against
/// DNS rebinding, if no tokens are in force), the request rate, the route, the token's role and,
/// for methods that change something, the Origin field (against other web pages). Exceptions of a
/// handler are answered as problem documents.
class Server {
 public:
  /// Binds and listens, and serves from then on. Throws Error(kUsage) if the address is taken or
  /// not this machine's, if certificate or key cannot be read, if the address reaches beyond
  /// loopback without both TLS and tokens, or if there are no tokens and the kernel cannot say who
  /// calls. Throws Error(kInternal) if a route takes longer bodies than `options.request`.
  Server(ServerOptions options, Router router);
  /// Calls Stop().
  ~Server();

  uint16_t port() const;  ///< 0 for a Unix socket
  /// "http://127.0.0.1:8080", "https://…" or "unix:/path".
  const std::string& url() const;

  /// Runs `work` on the server's thread, soon. Drops it once the server has stopped. Any thread.
  void Post(std::function<void()> work);
  /// Server's thread only.
  const Statistics& statistics() const;

  /// Takes no more connections, ends event streams, gives requests under way `grace` to end, closes
  /// the rest and ends the thread. Do not call it on the server's thread.
  void Stop(std::chrono::milliseconds grace = std::chrono::milliseconds(2000));

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace evald::http

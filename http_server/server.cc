#include "http_server/server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <set>
#include <thread>

#include "base/log.h"
#include "http_server/await.h"
#include "http_server/connection.h"
#include "http_server/peer_owner.h"
#include "http_server/problem.h"
#include "http_server/unix_socket.h"

namespace evald::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using local = asio::local::stream_protocol;
using error_code = boost::system::error_code;

constexpr std::chrono::milliseconds kSweep{100};
constexpr std::chrono::milliseconds kPauseAfterAcceptError{100};
constexpr int kSendBufferBytes = 128 * 1024;  // bytes that the kernel may hold for one client
// Refused callers who are told why at one time; others are cut off
constexpr size_t kStrangersMax = 32;
constexpr size_t kStrangersLoggedMax = 100;
// A client that has just been answered may be about to ask again
constexpr std::chrono::seconds kRest{1};

// The answer to a caller who is not served.
Problem OtherUser(const Caller& caller) {
  if (caller.unknown) {
    return {503,
            "unavailable",
            "this service has no tokens and has to ask the kernel who calls, which fails: " +
                caller.reason,
            "try again; the service's host may have no file descriptors or memory left",
            "",
            {{"Retry-After", "1"}}};
  }
  return {403, "other-user",
          fmt::format("this service has no tokens and serves its own user (uid {}) only; {}",
                      ::geteuid(), caller.reason),
          "ask that user to give the service a token file ('tokens' in serve.yaml, docs/rest.md) "
          "and you a token, or "
          "start a service of your own"};
}

// The answer to a client over the limit. Its request is not read.
std::string FullAnswer(const ServerOptions& options) {
  const Response response = options.problem_answer(
      {503, "connections", "too many connections", "", "", {{"Retry-After", "1"}}});
  std::string text = fmt::format("HTTP/1.1 503 {}\r\n", ReasonPhrase(503));
  for (const auto& [name, value] : response.headers.fields()) text += name + ": " + value + "\r\n";
  return text + fmt::format("Connection: close\r\nContent-Length: {}\r\n\r\n{}",
                            response.body.size(), response.body);
}

// The only caller of a Unix socket without tokens is this user, or root.
Caller CallerOfUnixSocket(int socket) {
  const std::optional<uid_t> user = UserAtOtherEnd(socket);
  Caller caller;
  caller.accepted = user && (*user == ::geteuid() || *user == 0);
  if (!caller.accepted) {
    caller.reason = user ? fmt::format("the call comes from uid {}", *user)
                         : "the kernel does not say who calls";
  }
  return caller;
}

asio::ip::address ParseAddress(const std::string& text) {
  error_code error;
  const auto address = asio::ip::make_address(text == "localhost" ? "127.0.0.1" : text, error);
  if (error) {
    throw Error(ErrorKind::kUsage,
                fmt::format("listen address '{}': expected an IP address or localhost", text));
  }
  return address;
}

void RequireGuards(const ServerOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    throw Error(ErrorKind::kUsage, "TLS needs both a certificate and a key");
  }
  if (!options.socket.empty() && !options.certificate.empty())
    throw Error(ErrorKind::kUsage, "a Unix socket has no TLS");
  if (!options.socket.empty() || IsLoopback(options.address)) return;
  if (options.certificate.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("listening on {} needs TLS", options.address),
                "give a certificate and a key, or listen on 127.0.0.1");
  }
  if (options.tokens.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("listening on {} needs tokens", options.address),
                "give a token file, or listen on 127.0.0.1");
  }
}

// The memory for bodies is bounded for each connection. A route that promised to take more would
// refuse bodies that its callers may send.
void RequireBounds(const RequestLimits& limits, const Router& router) {
  for (const Route& route : router.routes()) {
    if (route.body_bytes_max <= limits.body_bytes_max) continue;
    throw Error(ErrorKind::kInternal,
                fmt::format("{} {}: takes a body of {} bytes, expected at most {}", route.method,
                            route.path, route.body_bytes_max, limits.body_bytes_max));
  }
}

std::unique_ptr<asio::ssl::context> MakeTls(const ServerOptions& options) {
  if (options.certificate.empty()) return nullptr;
  auto tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  tls->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                   asio::ssl::context::no_tlsv1_1 | SSL_OP_NO_RENEGOTIATION |
                   SSL_OP_NO_COMPRESSION);
  error_code error;
  tls->use_certificate_chain_file(options.certificate.string(), error);
  if (error) {
    throw Error(ErrorKind::kUsage,
                fmt::format("certificate {}: {}", options.certificate.string(), error.message()));
  }
  tls->use_private_key_file(options.key.string(), asio::ssl::context::pem, error);
  if (error)
    throw Error(ErrorKind::kUsage,
                fmt::format("key {}: {}", options.key.string(), error.message()));
  return tls;
}

}  // namespace

namespace {

// The names under which callers reach the server. "localhost" is one of them always.
std::vector<std::string> HostsOf(const ServerOptions& options) {
  std::vector<std::string> hosts = options.hosts;
  if (!options.address.empty()) hosts.push_back(options.address);
  return hosts;
}

}  // namespace

Shared::Shared(const ServerOptions& options_in, Router router)
    : options(options_in),
      admission({options_in.tokens, HostsOf(options_in), options_in.requests_per_second,
                 options_in.requests_burst},
                std::move(router)) {}

bool IsLoopback(const std::string& address) { return ParseAddress(address).is_loopback(); }

struct Server::State {
  State(const ServerOptions& options, Router router)
      : shared(std::make_shared<Shared>(options, std::move(router))), tls(MakeTls(options)) {
    if (options.tokens.empty() && options.socket.empty()) peer_owner.emplace();
  }

  void Listen();
  void ListenOnTcp();
  void ListenOnPath();
  template <typename Acceptor>
  asio::awaitable<void> Accept(Acceptor* from);
  asio::awaitable<void> Serve(std::shared_ptr<Connection> connection, std::string client);
  asio::awaitable<void> TurnAway(std::shared_ptr<Connection> connection, Problem problem);
  asio::awaitable<void> Sweep();
  void Leave(const std::string& client) {
    if (--per_client[client] == 0) per_client.erase(client);
  }
  void Take(tcp::socket socket);
  void Take(local::socket socket);
  void Begin(ByteStream::Socket socket, const std::string& client);
  bool MakePlace(const std::string& client);
  std::shared_ptr<Connection> Expendable(const std::string& only_of, bool known) const;
  void TakeStranger(ByteStream::Socket socket, const Caller& caller);
  void WindDown(std::chrono::milliseconds grace);

  std::shared_ptr<Shared> shared;
  std::unique_ptr<asio::ssl::context> tls;
  tcp::acceptor acceptor{shared->context};
  local::acceptor local_acceptor{shared->context};  // if the server has a Unix socket
  std::optional<UnixListener> unix_listener;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<std::string, size_t> per_client;
  std::optional<PeerOwner> peer_owner;            // if no tokens are in force
  std::set<std::shared_ptr<Connection>> evicted;  // of `connections`: closed and about to go
  size_t strangers = 0;  // of `connections`: the number that is being turned away
  std::set<std::string> strangers_logged;
  std::chrono::steady_clock::time_point close_all_at = std::chrono::steady_clock::time_point::max();
  uint16_t port = 0;
  std::string url;
  std::thread thread;
};

void Server::State::Listen() {
  if (shared->options.socket.empty()) {
    ListenOnTcp();
    asio::co_spawn(shared->context, Accept(&acceptor), asio::detached);
  } else {
    ListenOnPath();
    asio::co_spawn(shared->context, Accept(&local_acceptor), asio::detached);
  }
}

void Server::State::ListenOnPath() {
  unix_listener.emplace(shared->options.socket);
  local_acceptor.assign(local(), unix_listener->TakeSocket().release());
  url = "unix:" + shared->options.socket.string();
}

void Server::State::ListenOnTcp() {
  const ServerOptions& options = shared->options;
  const tcp::endpoint endpoint(ParseAddress(options.address), options.port);
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("listening on {} port {}: {}", options.address, options.port, error.message()),
        "choose another port, or 0 for any free one");
  }
  const std::string host = endpoint.address().is_v6() ? "[" + endpoint.address().to_string() + "]"
                                                      : endpoint.address().to_string();
  port = acceptor.local_endpoint().port();
  url = fmt::format("{}://{}:{}", tls ? "https" : "http", host, port);
}

template <typename Acceptor>
asio::awaitable<void> Server::State::Accept(Acceptor* from) {
  while (!shared->closing) {
    auto [error, socket] = co_await from->async_accept(kAwait);
    if (shared->closing) break;
    if (error) {  // for example, no file descriptors are left
      asio::steady_timer pause(shared->context, kPauseAfterAcceptError);
      static_cast<void>(co_await pause.async_wait(kAwait));
      continue;
    }
    try {
      Take(std::move(socket));
      // For example, no memory is left: this caller is lost, the next is served
    } catch (const std::exception& failed) {
      log::Error("http: a connection cannot be taken: {}", failed.what());
    }
  }
}

void Server::State::Take(tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;
  ++shared->statistics.connections_total;
  if (peer_owner) {
    const Caller caller = peer_owner->Of(socket.native_handle());
    if (!caller.accepted) return TakeStranger(std::move(socket), caller);
  }
  const auto write_ms = static_cast<unsigned>(shared->options.time.write.count());
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &write_ms, sizeof write_ms);
  socket.set_option(tcp::no_delay(true), error);
  socket.set_option(asio::socket_base::keep_alive(true), error);
  Begin(std::move(socket), peer.address().to_string());
}

void Server::State::Take(local::socket socket) {
  ++shared->statistics.connections_total;
  if (shared->options.tokens.empty()) {
    const Caller caller = CallerOfUnixSocket(socket.native_handle());
    if (!caller.accepted) return TakeStranger(std::move(socket), caller);
  }
  Begin(std::move(socket), "unix");
}

void Server::State::Begin(ByteStream::Socket socket, const std::string& client) {
  error_code error;
  if (!MakePlace(client)) {
    ++shared->statistics.connections_refused_total;
    socket.non_blocking(true, error);
    if (!tls) socket.write_some(asio::buffer(FullAnswer(shared->options)), error);
    socket.shutdown(ByteStream::Socket::shutdown_both, error);
    return;
  }
  socket.set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), error);
  ++per_client[client];
  auto connection = std::make_shared<Connection>(shared, std::move(socket), client, tls.get());
  connections.insert(connection);
  asio::co_spawn(shared->context, Serve(std::move(connection), client), asio::detached);
}

// The connection that gives way first, among those with or without an admitted request (`known`):
// the one that has waited longest, of the address that has most connections. A connection with an
// admitted request gives way only while it is idle.
std::shared_ptr<Connection> Server::State::Expendable(const std::string& only_of,
                                                      bool known) const {
  std::shared_ptr<Connection> best;
  size_t best_held = 0;
  const auto rested = Connection::Clock::now() - kRest;
  for (const auto& connection : connections) {
    const auto held = per_client.find(connection->client());
    if (connection->known() != known || evicted.count(connection) > 0 || held == per_client.end())
      continue;
    if (!only_of.empty() && connection->client() != only_of) continue;
    if (known && (!connection->idle() || connection->since() > rested)) continue;
    if (best && std::pair(held->second, best->since()) <= std::pair(best_held, connection->since()))
      continue;
    best = connection;
    best_held = held->second;
  }
  return best;
}

// Makes room for one more connection of `client` by closing one of less use. False if there is
// none. So silent connections cannot shut out those with a token.
bool Server::State::MakePlace(const std::string& client) {
  const auto held = per_client.find(client);
  const bool client_full =
      held != per_client.end() && held->second >= shared->options.connections_per_client_max;
  const bool full =
      connections.size() - strangers - evicted.size() >= shared->options.connections_max;
  if (!client_full && !full) return true;
  std::shared_ptr<Connection> expendable = Expendable(client_full ? client : "", false);
  if (!expendable) expendable = Expendable(client_full ? client : "", true);
  if (!expendable) return false;
  ++shared->statistics.connections_evicted_total;
  evicted.insert(expendable);
  Leave(expendable->client());
  expendable->Close();
  return true;
}

// Takes a call of another user. It uses no place of the service's own user: few such calls are
// answered at one time, and not for long.
void Server::State::TakeStranger(ByteStream::Socket socket, const Caller& caller) {
  ++shared->statistics.connections_refused_total;
  if (!caller.gone && strangers_logged.size() < kStrangersLoggedMax &&
      strangers_logged.insert(caller.reason).second) {
    log::Warn("http: a call is {}: {}; without tokens the service serves its own user only",
              caller.unknown ? "put off" : "refused", caller.reason);
  }
  if (strangers >= kStrangersMax) return;
  auto connection = std::make_shared<Connection>(shared, std::move(socket), "", tls.get());
  connections.insert(connection);
  ++strangers;
  asio::co_spawn(shared->context, TurnAway(std::move(connection), OtherUser(caller)),
                 asio::detached);
}

asio::awaitable<void> Server::State::TurnAway(std::shared_ptr<Connection> connection,
                                              Problem problem) {
  try {
    co_await connection->TurnAway(problem);
  } catch (const std::exception& error) {
    log::Error("http: a refused connection ended: {}", error.what());
    connection->Close();
  }
  connections.erase(connection);
  --strangers;
}

asio::awaitable<void> Server::State::Serve(std::shared_ptr<Connection> connection,
                                           std::string client) {
  try {
    co_await connection->Run();
  } catch (const std::exception& error) {
    log::Error("http: a connection ended: {}", error.what());
    connection->Close();
  }
  connections.erase(connection);
  if (evicted.erase(connection) == 0) Leave(client);
}

// Closes connections that are too slow and, when the server ends, those that are left. Ends itself
// after that.
asio::awaitable<void> Server::State::Sweep() {
  asio::steady_timer timer(shared->context);
  while (!shared->closing || !connections.empty()) {
    timer.expires_after(shared->closing ? kSweep / 10 : kSweep);
    static_cast<void>(co_await timer.async_wait(kAwait));
    const auto now = std::chrono::steady_clock::now();
    const auto all =
        std::vector<std::shared_ptr<Connection>>(connections.begin(), connections.end());
    for (const auto& connection : all) {
      connection->Expire(now);
      if (now >= close_all_at) connection->Close();
    }
  }
}

void Server::State::WindDown(std::chrono::milliseconds grace) {
  shared->closing = true;
  close_all_at = std::chrono::steady_clock::now() + grace;
  error_code ignored;
  acceptor.close(ignored);
  local_acceptor.close(ignored);
  for (const auto& connection : std::vector(connections.begin(), connections.end()))
    connection->WindDown();
}

Server::Server(ServerOptions options, Router router) {
  RequireGuards(options);
  RequireBounds(options.request, router);
  state_ = std::make_shared<State>(options, std::move(router));
  state_->Listen();
  asio::io_context& context = state_->shared->context;
  asio::co_spawn(context, state_->Sweep(), asio::detached);
  state_->thread = std::thread([state = state_.get()] {
    for (;;) {
      try {
        state->shared->context.run();
        return;
      } catch (const std::exception& error) {
        log::Error("http: {}", error.what());
      }
    }
  });
}

Server::~Server() { Stop(); }

uint16_t Server::port() const { return state_->port; }
const std::string& Server::url() const { return state_->url; }
void Server::Post(std::function<void()> work) {
  asio::post(state_->shared->context, std::move(work));
}
const Statistics& Server::statistics() const { return state_->shared->statistics; }

void Server::Stop(std::chrono::milliseconds grace) {
  if (!state_->thread.joinable()) return;
  asio::post(state_->shared->context, [state = state_.get(), grace] { state->WindDown(grace); });
  state_->thread.join();
}

}  // namespace evald::http

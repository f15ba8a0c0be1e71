#include "orchestrator/agent/dialer.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>

#include "evald/error.h"
#include "orchestrator/fleet/stream_wire.h"
#include "orchestrator/fleet/work_thread.h"
#include "protocol/channel.h"

namespace evald {
namespace asio = boost::asio;
namespace ssl = asio::ssl;
using asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

namespace {

constexpr std::chrono::seconds kPatience{15};  // for a connection and the answer to it
constexpr size_t kHeadBytesMax = 16 * 1024;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

struct Url {
  bool tls = false;
  std::string host, port, authority;
};

Url ParseUrl(const std::string& text) {
  Url url;
  const std::string_view expected = "expected https://host:port, or http://127.0.0.1:port";
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) {
    throw Error(ErrorKind::kUsage, fmt::format("--server '{}': {}", text, expected));
  }
  url.authority = text.substr(url.tls ? 8 : 7);
  const size_t bracket = url.authority.rfind(']'), colon = url.authority.rfind(':');
  const bool has_port =
      colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  url.host = url.authority.substr(0, has_port ? colon : std::string::npos);
  url.port = has_port ? url.authority.substr(colon + 1) : url.tls ? "443" : "80";
  if (url.host.starts_with('[') && url.host.ends_with(']'))
    url.host = url.host.substr(1, url.host.size() - 2);
  int port = 0;
  const auto number = std::from_chars(url.port.data(), url.port.data() + url.port.size(), port);
  if (url.host.empty() || url.host.find('/') != std::string::npos || number.ec != std::errc() ||
      number.ptr != url.port.data() + url.port.size() || port < 1 || port > 65535) {
    throw Error(ErrorKind::kUsage, fmt::format("--server '{}': {}", text, expected));
  }
  return url;
}

// A line of a head, or the detail of a problem document, that says why there is no connection.
std::string Refusal(const std::string& answer) {
  const size_t end = answer.find("\r\n");
  const size_t detail = answer.find("\"detail\":\"");
  if (detail == std::string::npos) return answer.substr(0, end);
  const size_t begin = detail + 10;
  return answer.substr(0, end) + ": " + answer.substr(begin, answer.find('"', begin) - begin);
}

}  // namespace

// One try. Whoever says first how it went is heard: the connection's steps, their failure, or the
// clock.
struct Attempt {
  Attempt(Loop* loop, Dialer::Done done_in)
      : done(std::move(done_in)), clock(loop->context(), kPatience) {}

  void Say(std::shared_ptr<Wire> wire, const std::string& why) {
    if (!done) return;
    clock.cancel();
    std::exchange(done, nullptr)(std::move(wire), why);
  }

  Dialer::Done done;
  asio::steady_timer clock;
};

// When the clock strikes, the socket closes and the step under way fails. Looking up a name cannot
// be ended, so the attempt is over without it.
template <typename Socket>
void Watch(const std::shared_ptr<Attempt>& attempt, std::weak_ptr<Socket> socket) {
  attempt->clock.async_wait([attempt, socket](const ErrorCode& error) {
    if (error) return;
    ErrorCode ignored;
    if (const auto open = socket.lock()) open->lowest_layer().close(ignored);
    const LoopTurn turn("a connection that does not come");
    attempt->Say(nullptr, fmt::format("no answer within {} s", kPatience.count()));
  });
}

std::string ReasonOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    return CurrentError().what();
  }
}

struct Dialer::State : std::enable_shared_from_this<Dialer::State> {
  State(Loop* loop_in, OrchestratorAddress address_in)
      : loop(loop_in), address(std::move(address_in)) {
    if (!address.socket.empty()) return;
    url = ParseUrl(address.server);
    const bool here = url.host == "localhost" || url.host == "127.0.0.1" || url.host == "::1";
    if (!url.tls && !here) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--server '{}': what is said would cross the network unencrypted",
                              address.server),
                  "use https://");
    }
    if (url.tls) MakeTls();
  }

  void MakeTls() {
    tls.emplace(ssl::context::tls_client);
    tls->set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
    tls->set_verify_mode(ssl::verify_peer);
    ErrorCode error;
    if (address.ca_file.empty()) {
      tls->set_default_verify_paths(error);
    } else {
      tls->load_verify_file(address.ca_file.string(), error);
    }
    if (error) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--ca '{}': {}", address.ca_file.string(), error.message()));
    }
  }

  void DialSocket(Done done) {
    std::shared_ptr<Wire> wire;
    std::string why;
    try {
      const protocol::SocketName name(address.socket);
      Unix::socket socket(loop->context());
      ErrorCode error;
      socket.connect(Unix::endpoint(name.text()), error);  // local: does not wait
      why = error ? error.message() : "";
      if (!error) wire = std::make_shared<StreamWire<Unix::socket>>(std::move(socket));
    } catch (const std::exception& e) {
      why = e.what();
    }
    loop->Post([done = std::move(done), wire, why] { done(wire, why); });
  }

  // Asks to speak the agents' protocol over `stream`.
  template <typename Stream>
  asio::awaitable<std::string> Upgrade(Stream& stream, std::string* rest) {
    std::string request = fmt::format(
        "GET /v1/agents/connect HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\n"
        "Upgrade: evald-agent\r\n",
        url.authority);
    if (!address.token.empty()) request += "Authorization: Bearer " + address.token + "\r\n";
    request += "\r\n";
    auto [failed, sent] = co_await asio::async_write(stream, asio::buffer(request), kAwait);
    if (failed) co_return failed.message();
    std::string head;
    auto [error, length] = co_await asio::async_read_until(
        stream, asio::dynamic_buffer(head, kHeadBytesMax), "\r\n\r\n", kAwait);
    if (error) co_return error.message();
    if (head.starts_with("HTTP/1.1 101 ")) {
      *rest = head.substr(length);
      co_return "";
    }
    // The problem document, one object, came with the head or comes after it. The connection stays
    // open.
    co_await asio::async_read_until(stream, asio::dynamic_buffer(head, kHeadBytesMax), '}', kAwait);
    co_return Refusal(head);
  }

  // A number is not looked up: getaddrinfo asks the kernel for all its addresses, and waits without
  // a limit.
  asio::awaitable<std::string> Connect(tcp::socket* socket) {
    ErrorCode failed;
    if (const auto address = asio::ip::make_address(url.host, failed); !failed) {
      const auto port = static_cast<uint16_t>(std::stoi(url.port));
      std::tie(failed) = co_await socket->async_connect({address, port}, kAwait);
    } else {
      tcp::resolver resolver(loop->context());
      auto [unknown, endpoints] = co_await resolver.async_resolve(url.host, url.port, kAwait);
      if (unknown) co_return unknown.message();
      std::tie(failed, std::ignore) = co_await asio::async_connect(*socket, endpoints, kAwait);
    }
    if (failed) co_return failed.message();
    ErrorCode ignored;
    socket->set_option(tcp::no_delay(true), ignored);
    socket->set_option(asio::socket_base::keep_alive(true), ignored);
    co_return "";
  }

  template <typename Stream>
  asio::awaitable<void> Speak(std::shared_ptr<Stream> stream, std::shared_ptr<Attempt> attempt) {
    std::string rest;
    const std::string why = co_await Upgrade(*stream, &rest);
    if (!why.empty()) co_return attempt->Say(nullptr, why);
    auto wire = std::make_shared<StreamWire<Stream>>(std::move(*stream));
    wire->Feed(rest);
    attempt->Say(wire, "");
  }

  asio::awaitable<void> DialPlain(std::shared_ptr<Attempt> attempt) {
    auto socket = std::make_shared<tcp::socket>(loop->context());
    Watch(attempt, std::weak_ptr<tcp::socket>(socket));
    const std::string why = co_await Connect(socket.get());
    if (!why.empty()) co_return attempt->Say(nullptr, why);
    co_await Speak(socket, attempt);
  }

  asio::awaitable<void> DialTls(std::shared_ptr<Attempt> attempt) {
    using Stream = ssl::stream<tcp::socket>;
    auto stream = std::make_shared<Stream>(loop->context(), *tls);
    Watch(attempt, std::weak_ptr<Stream>(stream));
    const std::string why = co_await Connect(&stream->next_layer());
    if (!why.empty()) co_return attempt->Say(nullptr, why);
    stream->set_verify_callback(ssl::host_name_verification(url.host));
    ::SSL_set_tlsext_host_name(stream->native_handle(), url.host.c_str());
    auto [error] = co_await stream->async_handshake(ssl::stream_base::client, kAwait);
    if (error) co_return attempt->Say(nullptr, error.message());
    co_await Speak(stream, attempt);
  }

  Loop* loop;
  OrchestratorAddress address;
  Url url;
  std::optional<ssl::context> tls;
};

Dialer::Dialer(Loop* loop, OrchestratorAddress address)
    : state_(std::make_shared<State>(loop, std::move(address))),
      name_(state_->address.socket.empty() ? state_->address.server
                                           : state_->address.socket.string()) {}

Dialer::~Dialer() = default;

// However the coroutine ends, the attempt has an answer: an agent that hears none would never try
// again.
void Dialer::Dial(Done done) {
  if (!state_->address.socket.empty()) return state_->DialSocket(std::move(done));
  auto attempt = std::make_shared<Attempt>(state_->loop, std::move(done));
  asio::co_spawn(
      state_->loop->context(),
      [state = state_, attempt] {
        return state->url.tls ? state->DialTls(attempt) : state->DialPlain(attempt);
      },
      [attempt](const std::exception_ptr& thrown) {
        attempt->Say(nullptr,
                     thrown ? ReasonOf(thrown) : "the connection ended before it was made");
      });
}

}  // namespace evald

#include "orchestrator/agent/dialer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <ctime>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "evald/error.h"
#include "http_client/problem.h"
#include "http_client/url.h"
#include "orchestrator/fleet/stream_wire.h"
#include "orchestrator/fleet/work_thread.h"
#include "protocol/channel.h"

namespace evald {
namespace asio = boost::asio;
namespace ssl = asio::ssl;
namespace beast = boost::beast;
using asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

namespace {

constexpr std::chrono::seconds kPatience{15};  // to connect and get an answer
constexpr uint32_t kHeadBytesMax = 16 * 1024;
constexpr uint64_t kBodyBytesMax = 64 * 1024;  // of a refusal
constexpr const char* kProtocol = "evald-agent";
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Throws Error(kUsage) for anything but scheme, host and port.
http_client::Url OrchestratorUrl(const std::string& text) {
  try {
    http_client::Url url = http_client::ParseUrl(text);
    if (!url.has_user && !url.has_query && url.path == "/") return url;
  } catch (const Error&) {
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("--server '{}': expected https://host:port, or http://127.0.0.1:port",
                          http_client::Shown(text)));
}

// The request to speak the agents' protocol (docs/protocol.md) from then on.
beast::http::request<beast::http::empty_body> UpgradeRequest(const std::string& authority,
                                                             const std::string& token) {
  beast::http::request<beast::http::empty_body> request(beast::http::verb::get,
                                                        "/v1/agents/connect", 11);
  request.set(beast::http::field::host, authority);
  request.set(beast::http::field::user_agent, "evald");
  request.set(beast::http::field::connection, "Upgrade");
  request.set(beast::http::field::upgrade, kProtocol);
  if (!token.empty()) request.set(beast::http::field::authorization, "Bearer " + token);
  return request;
}

// "" if the server speaks the agents' protocol from now on, else the reason.
std::string ReasonOf(const beast::http::response<beast::http::string_body>& answer) {
  const int status = answer.result_int();
  if (status != 101) {
    const std::string said = http_client::ReadProblem(status, answer.body()).detail;
    return said.starts_with("status ") ? said : fmt::format("status {}: {}", status, said);
  }
  const auto protocol = answer[beast::http::field::upgrade];
  if (beast::iequals(protocol, kProtocol)) return "";
  return fmt::format("the server speaks '{}' from now on, expected {}",
                     PrintableLine({protocol.data(), protocol.size()}), kProtocol);
}

// Why a handshake has failed. A certificate of evald's own is valid for years: if its time seems
// wrong, the clock of one of the hosts is.
std::string ReasonOf(const ErrorCode& error, SSL* connection) {
  const long verified = ::SSL_get_verify_result(connection);
  if (verified == X509_V_OK) return error.message();
  const std::string why = ::X509_verify_cert_error_string(verified);
  if (verified != X509_V_ERR_CERT_NOT_YET_VALID && verified != X509_V_ERR_CERT_HAS_EXPIRED)
    return error.message() + ": " + why;
  return fmt::format("{}: {}; this host's clock says {:%F %T} UTC: compare it with the service's",
                     error.message(), why, fmt::gmtime(std::time(nullptr)));
}

}  // namespace

// One try. The first outcome counts: of the connection's steps, their failure, or the clock.
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

// When the time is up, the socket closes and the step under way fails. Looking up a name cannot be
// cancelled, so the attempt ends without waiting for it.
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

std::string TextOf(const std::exception_ptr& thrown) {
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
    url = OrchestratorUrl(address.server);
    if (!url.tls && !http_client::IsLoopback(url)) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--server '{}': messages and files would cross the network unencrypted",
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

  // Asks the server to speak the agents' protocol over `stream`. Returns why not; "" on success,
  // with the bytes that came after the answer in `rest`.
  template <typename Stream>
  asio::awaitable<std::string> Upgrade(Stream& stream, std::string* rest) {
    const auto request = UpgradeRequest(url.authority, address.token);
    auto [failed, sent] = co_await beast::http::async_write(stream, request, kAwait);
    if (failed) co_return failed.message();
    refused = false;
    beast::flat_buffer buffer;
    beast::http::response_parser<beast::http::string_body> answer;
    answer.header_limit(kHeadBytesMax);
    answer.body_limit(kBodyBytesMax);
    auto [error, length] = co_await beast::http::async_read(stream, buffer, answer, kAwait);
    if (error && !answer.is_header_done()) co_return error.message();
    *rest = beast::buffers_to_string(buffer.data());
    refused = answer.get().result_int() == 401 || answer.get().result_int() == 403;
    co_return ReasonOf(answer.get());
  }

  // A numeric address is not looked up: getaddrinfo asks the kernel for all its addresses, and
  // waits without a limit.
  asio::awaitable<std::string> Connect(tcp::socket* socket) {
    ErrorCode failed;
    if (const auto address = asio::ip::make_address(url.host, failed); !failed) {
      std::tie(failed) = co_await socket->async_connect({address, url.port}, kAwait);
    } else {
      tcp::resolver resolver(loop->context());
      auto [unknown, endpoints] =
          co_await resolver.async_resolve(url.host, std::to_string(url.port), kAwait);
      if (unknown) co_return unknown.message();
      std::tie(failed, std::ignore) = co_await asio::async_connect(*socket, endpoints, kAwait);
    }
    if (failed) co_return failed.message();
    ErrorCode ignored;
    const auto local = socket->local_endpoint(ignored).address();
    if (!ignored) local_address = local.to_string();
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
    if (error) co_return attempt->Say(nullptr, ReasonOf(error, stream->native_handle()));
    co_await Speak(stream, attempt);
  }

  Loop* loop;
  OrchestratorAddress address;
  bool refused = false;
  http_client::Url url;
  std::string local_address;
  std::optional<ssl::context> tls;
};

Dialer::Dialer(Loop* loop, OrchestratorAddress address)
    : state_(std::make_shared<State>(loop, std::move(address))),
      name_(state_->address.socket.empty() ? state_->address.server
                                           : state_->address.socket.string()) {}

Dialer::~Dialer() = default;

bool Dialer::refused() const { return state_->refused; }
const std::string& Dialer::local_address() const { return state_->local_address; }

// However the coroutine ends, the attempt gets an answer: without one the agent would never try
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
        attempt->Say(nullptr, thrown ? TextOf(thrown) : "the connection ended before it was made");
      });
}

}  // namespace evald

#include "worker/command/key_gate.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cctype>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"
#include "http_server/await.h"

namespace evald::command {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using http::kAwait;

constexpr size_t kHeadBytesMax = size_t{64} << 10;
constexpr std::chrono::seconds kHeadTime{30};
constexpr std::chrono::milliseconds kPauseWithoutFiles{100};
constexpr std::string_view kRefusal =
    "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 103\r\n"
    "Connection: close\r\n\r\n"
    R"({"error":{"message":"the key is absent or wrong","type":"authentication_error","param":null,"code":""}})";

bool SameLetters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

// In a time that does not tell how many bytes are right.
bool SameKey(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  return difference == 0;
}

template <typename From, typename To>
asio::awaitable<void> Pass(From& from, To& to) {
  char bytes[16384];
  while (true) {
    const auto [read_error, got] = co_await from.async_read_some(asio::buffer(bytes), kAwait);
    if (got == 0 && read_error) co_return;
    const auto [error, sent] = co_await asio::async_write(to, asio::buffer(bytes, got), kAwait);
    if (error || read_error) co_return;
  }
}

}  // namespace

bool CarriesKey(std::string_view head, std::string_view key) {
  bool carries = false;
  for (const std::string& line : Split(head, '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos ||
        !SameLetters(std::string_view(line).substr(0, colon), "authorization"))
      continue;
    const std::string_view value = Trim(std::string_view(line).substr(colon + 1));
    constexpr std::string_view kScheme = "bearer ";
    if (value.size() < kScheme.size() || !SameLetters(value.substr(0, kScheme.size()), kScheme))
      return false;
    carries = SameKey(Trim(value.substr(kScheme.size())), key);
  }
  return carries;
}

struct KeyGate::State {
  State(std::filesystem::path socket_in, std::string key_in)
      : socket(std::move(socket_in)), key(std::move(key_in)), acceptor(context) {}

  asio::awaitable<void> Accept();
  asio::awaitable<void> Serve(tcp::socket client);

  std::filesystem::path socket;
  std::string key;
  asio::io_context context{1};
  tcp::acceptor acceptor;
  std::thread thread;
};

asio::awaitable<void> KeyGate::State::Accept() {
  while (true) {
    auto [error, client] = co_await acceptor.async_accept(kAwait);
    if (!acceptor.is_open() || error == asio::error::operation_aborted) co_return;
    if (error) {  // no descriptor left, say
      asio::steady_timer pause(context, kPauseWithoutFiles);
      co_await pause.async_wait(kAwait);
      continue;
    }
    asio::co_spawn(context, Serve(std::move(client)), asio::detached);
  }
}

asio::awaitable<void> KeyGate::State::Serve(tcp::socket client) {
  using asio::experimental::awaitable_operators::operator||;
  boost::system::error_code ignored;
  client.set_option(tcp::no_delay(true), ignored);
  std::string head;
  asio::steady_timer timer(context, kHeadTime);
  const auto first =
      co_await (asio::async_read_until(client, asio::dynamic_buffer(head, kHeadBytesMax),
                                       "\r\n\r\n", kAwait) ||
                timer.async_wait(kAwait));
  if (first.index() == 1 || std::get<0>(std::get<0>(first))) co_return;
  const std::string_view read = head;
  if (!CarriesKey(read.substr(0, read.find("\r\n\r\n")), key)) {
    co_await asio::async_write(client, asio::buffer(kRefusal), kAwait);
    client.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
  }
  stream_protocol::socket server(context);
  const auto [error] = co_await server.async_connect(stream_protocol::endpoint(socket), kAwait);
  if (error) co_return;
  const auto [write_error, sent] = co_await asio::async_write(server, asio::buffer(head), kAwait);
  if (write_error) co_return;
  co_await (Pass(client, server) || Pass(server, client));
}

KeyGate::KeyGate(std::filesystem::path socket, std::string key)
    : state_(std::make_unique<State>(std::move(socket), std::move(key))) {
  try {
    const tcp::endpoint loopback(asio::ip::address_v4::loopback(), 0);
    state_->acceptor.open(loopback.protocol());
    state_->acceptor.bind(loopback);
    state_->acceptor.listen();
  } catch (const boost::system::system_error& e) {
    throw Error(ErrorKind::kInfrastructure, std::string("a port of 127.0.0.1: ") + e.what());
  }
  asio::co_spawn(state_->context, state_->Accept(), asio::detached);
  state_->thread = std::thread([state = state_.get()] {
    try {
      state->context.run();
    } catch (const std::exception& e) {
      log::Error("the port before the server: {}", e.what());
    }
  });
}

KeyGate::~KeyGate() {
  state_->context.stop();
  state_->thread.join();
}

uint16_t KeyGate::port() const { return state_->acceptor.local_endpoint().port(); }

}  // namespace evald::command

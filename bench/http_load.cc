#include "bench/http_load.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>

#include "evald/error.h"

namespace evald::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBytes = 64 * 1024;
constexpr std::chrono::seconds kPatience{30};  // the wait for the last answers

http::request<http::string_body> MakeRequest(http::verb method, const std::string& path,
                                             const std::string& body) {
  http::request<http::string_body> request{method, path, 11};
  request.set(http::field::host, "127.0.0.1");
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();
  return request;
}

class Generator {
 public:
  explicit Generator(const HttpLoad& load)
      : load_(load), endpoint_(asio::ip::make_address("127.0.0.1"), load.port) {}

  HttpLoadResult Run() {
    result_.events.resize(static_cast<size_t>(load_.followers));
    for (size_t i = 0; i < result_.events.size(); ++i)
      asio::co_spawn(context_, Follow(i), asio::detached);
    begin_ = Clock::now();
    for (int i = 0; i < load_.connections; ++i)
      asio::co_spawn(context_, AskInTurn(i), asio::detached);
    const auto end =
        begin_ + std::chrono::duration_cast<Clock::duration>(Seconds(load_.seconds)) + kPatience;
    while (asking_done_ < load_.connections && Clock::now() < end)
      context_.run_for(std::chrono::milliseconds(20));
    result_.seconds = Seconds(last_answer_ - begin_).count();
    std::sort(result_.latencies_s.begin(), result_.latencies_s.end());
    return std::move(result_);
  }

 private:
  // Reads an event stream and counts its events. A read may end in the middle of an event.
  asio::awaitable<void> Follow(size_t place) {
    tcp::socket socket(context_);
    auto [refused] = co_await socket.async_connect(endpoint_, kAwait);
    const std::string request =
        fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", load_.events);
    if (!refused) co_await asio::async_write(socket, asio::buffer(request), kAwait);
    std::string data(kReadBytes, '\0'), tail;
    for (bool open = !refused; open;) {
      auto [error, bytes] = co_await socket.async_read_some(asio::buffer(data), kAwait);
      const std::string text = tail + data.substr(0, bytes);
      for (size_t at = 0; (at = text.find("\nevent: ", at)) != std::string::npos; ++at)
        ++result_.events[place];
      tail = text.substr(text.size() -
                         std::min<size_t>(text.size(), 7));  // one less than the text searched for
      open = !error;
    }
    ++result_.followers_lost;
  }

  // Sends requests at their times: request k of all connections is due k / per_second after the
  // beginning.
  asio::awaitable<void> AskInTurn(int place) {
    beast::tcp_stream stream(context_);
    stream.expires_never();
    auto [refused] = co_await stream.async_connect(endpoint_, kAwait);
    beast::flat_buffer buffer;
    asio::steady_timer timer(context_);
    const auto all = static_cast<int64_t>(load_.per_second * load_.seconds);
    for (int64_t k = place; k < all; k += load_.connections) {
      const auto due = begin_ + std::chrono::duration_cast<Clock::duration>(
                                    Seconds(static_cast<double>(k) / load_.per_second));
      timer.expires_at(due);
      co_await timer.async_wait(kAwait);
      const bool answered =
          !refused && co_await Ask(&stream, &buffer,
                                   load_.paths[static_cast<size_t>(k) % load_.paths.size()], due);
      if (!answered) ++result_.failed;
    }
    ++asking_done_;
  }

  asio::awaitable<bool> Ask(beast::tcp_stream* stream, beast::flat_buffer* buffer,
                            const std::string& path, Clock::time_point due) {
    const auto request = MakeRequest(http::verb::get, path, "");
    http::response<http::string_body> response;
    auto [not_sent, sent] = co_await http::async_write(*stream, request, kAwait);
    if (not_sent) co_return false;
    auto [not_read, read] = co_await http::async_read(*stream, *buffer, response, kAwait);
    if (not_read) co_return false;
    last_answer_ = Clock::now();
    result_.latencies_s.push_back(Seconds(last_answer_ - due).count());
    ++result_.statuses[static_cast<int>(response.result_int())];
    co_return true;
  }

  const HttpLoad& load_;
  const tcp::endpoint endpoint_;
  asio::io_context context_{1};
  HttpLoadResult result_;
  Clock::time_point begin_, last_answer_ = Clock::now();
  int asking_done_ = 0;
};

double ThreadCpuSeconds() {
  struct timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

HttpLoadResult RunHttpLoad(const HttpLoad& load) {
  const double before = ThreadCpuSeconds();
  HttpLoadResult result = Generator(load).Run();
  result.cpu_seconds = ThreadCpuSeconds() - before;
  return result;
}

std::string HttpRequest(uint16_t port, const std::string& method, const std::string& path,
                        const std::string& body) {
  try {
    asio::io_context context;
    beast::tcp_stream stream(context);
    stream.connect(tcp::endpoint(asio::ip::make_address("127.0.0.1"), port));
    http::write(stream, MakeRequest(http::string_to_verb(method), path, body));
    beast::flat_buffer buffer;
    http::response<http::string_body> response;
    http::read(stream, buffer, response);
    if (response.result_int() / 100 == 2) return response.body();
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} {}: {}: {}", method, path, response.result_int(), response.body()));
  } catch (const boost::system::system_error& error) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} {}: {}", method, path, error.what()));
  }
}

}  // namespace evald::bench

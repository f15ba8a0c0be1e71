#include "tiny_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <list>
#include <mutex>

namespace evald::test {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

}  // namespace

struct TinyServer::State {
  Handler handler;
  asio::io_context context;
  tcp::acceptor acceptor{context, {asio::ip::make_address("127.0.0.1"), 0}};
  std::atomic<bool> closing{false};
  std::atomic<int> requests{0};
  std::mutex mutex;
  std::list<tcp::socket> sockets;
  std::list<std::thread> threads;

  void Accept();
  void Serve(tcp::socket* socket);
  bool Answer(tcp::socket* socket, const TinyReply& reply);
};

TinyServer::TinyServer(Handler handler) : state_(std::make_shared<State>()) {
  state_->handler = std::move(handler);
  state_->threads.emplace_back([state = state_.get()] { state->Accept(); });
}

TinyServer::~TinyServer() {
  state_->closing = true;
  boost::system::error_code ignored;
  ::shutdown(state_->acceptor.native_handle(), SHUT_RDWR);
  state_->threads.front().join();
  for (tcp::socket& socket : state_->sockets) socket.shutdown(tcp::socket::shutdown_both, ignored);
  state_->threads.pop_front();
  for (std::thread& thread : state_->threads) thread.join();
}

std::string TinyServer::url() const {
  return "http://127.0.0.1:" + std::to_string(state_->acceptor.local_endpoint().port());
}

int TinyServer::requests() const { return state_->requests; }

void TinyServer::State::Accept() {
  while (!closing) {
    boost::system::error_code error;
    tcp::socket socket(context);
    acceptor.accept(socket, error);
    if (error) return;
    sockets.push_back(std::move(socket));
    threads.emplace_back([this, held = &sockets.back()] { Serve(held); });
  }
}

void TinyServer::State::Serve(tcp::socket* socket) {
  boost::beast::flat_buffer buffer;
  boost::system::error_code error;
  while (true) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(64 << 20);
    http::read(*socket, buffer, parser, error);
    if (error) break;
    const std::string path = parser.get().target();
    if (path == "/v1/completions") ++requests;
    if (!Answer(socket, handler(path, parser.get().body()))) break;
  }
  socket->shutdown(tcp::socket::shutdown_both, error);
}

bool TinyServer::State::Answer(tcp::socket* socket, const TinyReply& reply) {
  for (int waited = 0; waited < reply.delay_ms && !closing; waited += 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  boost::system::error_code error;
  if (reply.close_midway) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + reply.body;
    asio::write(*socket, asio::buffer(head), error);
    return false;
  }
  http::response<http::string_body> response(static_cast<http::status>(reply.status), 11);
  response.set(http::field::content_type, "application/json");
  if (!reply.retry_after.empty()) response.set(http::field::retry_after, reply.retry_after);
  response.body() = reply.body;
  response.prepare_payload();
  http::write(*socket, response, error);
  return !error;
}

}  // namespace evald::test

#include "http_server/byte_stream.h"

#include <poll.h>

#include <boost/asio/write.hpp>

#include "http_server/await.h"

namespace evald::http {

namespace asio = boost::asio;

ByteStream::ByteStream(Socket socket, asio::ssl::context* tls) : socket_(std::move(socket)) {
  if (tls != nullptr) tls_.emplace(socket_, *tls);
}

asio::awaitable<ByteStream::error_code> ByteStream::Handshake() {
  if (!tls_) co_return error_code();
  auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::server, kAwait);
  co_return error;
}

asio::awaitable<size_t> ByteStream::ReadSome(char* data, size_t bytes) {
  const auto buffer = asio::buffer(data, bytes);
  if (tls_) {
    auto [error, count] = co_await tls_->async_read_some(buffer, kAwait);
    co_return error ? 0 : count;
  }
  auto [error, count] = co_await socket_.async_read_some(buffer, kAwait);
  co_return error ? 0 : count;
}

asio::awaitable<ByteStream::error_code> ByteStream::Write(std::string_view bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  if (tls_) {
    auto [error, count] = co_await asio::async_write(*tls_, buffer, kAwait);
    co_return error;
  }
  auto [error, count] = co_await asio::async_write(socket_, buffer, kAwait);
  co_return error;
}

void ByteStream::EndSending() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

bool ByteStream::PeerHasEnded() {
  pollfd ended{socket_.native_handle(), POLLRDHUP, 0};
  return socket_.is_open() && ::poll(&ended, 1, 0) > 0;
}

void ByteStream::Close() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
}

}  // namespace evald::http

#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <optional>
#include <string_view>

namespace evald::http {

/// A connection over TCP, with or without TLS, or over a Unix socket. Errors are returned as
/// values. One read and one write at a time, on the thread of its io_context. Internal to this
/// room.
class ByteStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using error_code = boost::system::error_code;
  template <typename T>
  using awaitable = boost::asio::awaitable<T>;

  /// `tls` may be nullptr; it must outlive this.
  ByteStream(Socket socket, boost::asio::ssl::context* tls);

  /// The handshake of TLS; does nothing without TLS.
  awaitable<error_code> Handshake();
  /// Returns the number of bytes read; 0 at the end and after an error.
  awaitable<size_t> ReadSome(char* data, size_t bytes);
  /// Writes all bytes.
  awaitable<error_code> Write(std::string_view bytes);
  /// Tells the peer that no more bytes will be sent.
  void EndSending();
  /// Whether the peer has ended or broken the connection, or sends no more. Bytes that it sent
  /// before may be unread.
  bool PeerHasEnded();
  /// Ends operations under way with an error.
  void Close();

 private:
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace evald::http

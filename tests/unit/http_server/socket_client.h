#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"

namespace evald::http::test {

/// The longest wait for an event that must come, on a machine with any load.
inline constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(60);

/// A server's answer.
struct Answer {
  int status = 0;                              ///< 0: the connection ended first
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// A blocking client on a plain socket to 127.0.0.1, or to a Unix socket. It sends any bytes, right
/// or wrong.
class SocketClient {
 public:
  explicit SocketClient(uint16_t port);
  explicit SocketClient(const std::filesystem::path& path);

  /// False if the peer has gone.
  bool Send(const std::string& bytes);
  /// The next response, up to its Content-Length or to the connection's end.
  Answer Receive(bool head_only = false);
  /// Bytes up to the end of `text`. All bytes so far if the connection ends or `limit` is over.
  std::string ReceiveUntil(const std::string& text, std::chrono::milliseconds limit = kPatience);
  /// Whether the peer ends the connection within `limit`. Bytes before the end are dropped.
  bool EndsWithin(std::chrono::milliseconds limit);
  void EndSending();
  /// Makes the kernel take few bytes that the client has not read. Call it before the first byte.
  void ShrinkReceiveBuffer();

 private:
  bool Fill(std::chrono::milliseconds limit);

  UniqueFd socket_;
  std::string input_;
  bool ended_ = false;
};

/// "GET /path HTTP/1.1" with a Host field and `headers` ("Name: value\r\n"...), and with a body if
/// it is not empty.
std::string Ask(const std::string& method, const std::string& target,
                const std::string& headers = "", const std::string& body = "");

/// One request on its own connection.
Answer Fetch(uint16_t port, const std::string& request);

}  // namespace evald::http::test

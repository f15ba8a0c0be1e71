#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/file.h"

namespace evald::http::test {

/// How long to wait for what must come, however busy the machine is.
inline constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(60);

/// What came back.
struct Answer {
  int status = 0;                              ///< 0: the connection ended first
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// A blocking client on a plain socket to 127.0.0.1 that sends what it is told, right or wrong.
class SocketClient {
 public:
  explicit SocketClient(uint16_t port);

  /// False when the peer has gone.
  bool Send(const std::string& bytes);
  /// The next response: by Content-Length, or to the connection's end.
  Answer Receive(bool head_only = false);
  /// Bytes up to the end of `text`, or all there are when the connection ends or `limit` is over.
  std::string ReceiveUntil(const std::string& text, std::chrono::milliseconds limit = kPatience);
  /// Whether the peer ends the connection within `limit`; drops what comes before.
  bool EndsWithin(std::chrono::milliseconds limit);
  void EndSending();
  /// Keeps the kernel from taking much before it is read. Before the first byte.
  void ShrinkReceiveBuffer();

 private:
  bool Fill(std::chrono::milliseconds limit);

  UniqueFd socket_;
  std::string input_;
  bool ended_ = false;
};

/// "GET /path HTTP/1.1" with a Host field and `headers` ("Name: value\r\n"...), and a body when
/// there is one.
std::string Ask(const std::string& method, const std::string& target,
                const std::string& headers = "", const std::string& body = "");

/// One request on a connection of its own.
Answer Fetch(uint16_t port, const std::string& request);

}  // namespace evald::http::test

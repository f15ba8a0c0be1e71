#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/http/message.h"

namespace evald::http {

/// What one request may weigh.
struct RequestLimits {
  uint32_t header_bytes_max = 16 * 1024;  ///< request line and header fields together
  uint64_t body_bytes_max = 1 << 20;      ///< for any route; a route's own limit may be lower
};

/// Turns the bytes of a connection into requests (HTTP/1.0 and 1.1, RFC 9112, by Boost.Beast's
/// parser). No socket, no clock: bytes go in, requests come out, and bytes after a request's end
/// wait for the next (pipelining). Throws ProblemError for what is no request or exceeds a limit:
/// 400, 413, 414, 431, 501 or 505; the connection cannot go on after that.
class RequestParser {
 public:
  explicit RequestParser(const RequestLimits& limits);
  ~RequestParser();

  /// Takes bytes that arrived.
  void Feed(std::string_view bytes);

  /// Whether bytes of a request that is not whole yet have arrived.
  bool begun() const;

  /// Whether something was thrown.
  bool broken() const { return broken_; }

  /// Tries to get on to the end of the header. True once it is reached: `head()` is valid.
  bool ReadHead();
  /// Method, target, path, query and headers. The body is still empty.
  Request& head();
  /// Whether the sender waits for "100 Continue" before it sends the body.
  bool expects_continue() const;
  /// The connection may be used again after this request.
  bool keep_alive() const;
  /// The request was HTTP/1.1, so that an answer may be chunked.
  bool version_1_1() const;
  /// Lowers the limit on this body. Throws ProblemError(413) when its announced length exceeds it.
  void LimitBody(uint64_t bytes_max);

  /// Tries to get on to the end of the body. True once it is there.
  bool ReadBody();
  /// The whole request; the parser begins the next one.
  Request Take();

 private:
  struct State;
  void Begin();
  bool Advance(bool to_end);
  void LookForFolds(std::string_view head);
  void CheckHead();
  [[noreturn]] void Refuse(int status, std::string code, std::string detail);

  RequestLimits limits_;
  std::string input_;
  size_t consumed_ = 0;  ///< how much of input_ the current request has used
  bool broken_ = false;
  std::unique_ptr<State> state_;
};

}  // namespace evald::http

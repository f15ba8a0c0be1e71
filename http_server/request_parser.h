#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http_server/message.h"

namespace evald::http {

/// The largest sizes of one request.
struct RequestLimits {
  uint32_t header_bytes_max = 16 * 1024;  ///< request line and header fields together
  uint64_t body_bytes_max = 1 << 20;      ///< for any route; a route's own limit is not higher
};

/// Turns the bytes of a connection into requests (HTTP/1.0 and 1.1, RFC 9112, by Boost.Beast's
/// parser). No socket and no clock. Bytes after a request's end are kept for the next one
/// (pipelining). Throws ProblemError if the bytes are no request or exceed a limit: 400, 413, 414,
/// 431, 501 or 505. The connection cannot go on after that.
class RequestParser {
 public:
  explicit RequestParser(const RequestLimits& limits);
  ~RequestParser();

  /// Takes bytes that arrived.
  void Feed(std::string_view bytes);

  /// Whether bytes of an incomplete request have arrived.
  bool begun() const;

  /// Whether an exception was thrown.
  bool broken() const { return broken_; }

  /// Parses up to the end of the header, if it has arrived. Once true, `head()` is valid.
  bool ReadHead();
  /// Method, target, path, query and headers. The body is still empty.
  Request& head();
  /// Whether the sender waits for "100 Continue" before it sends the body.
  bool expects_continue() const;
  /// Whether the connection may be used again after this request.
  bool keep_alive() const;
  /// Whether the request was HTTP/1.1, so that an answer may be chunked.
  bool version_1_1() const;
  /// Lowers the limit on this body. Throws ProblemError(413) if its announced length exceeds it.
  void LimitBody(uint64_t bytes_max);

  /// Parses up to the end of the body. True once it has arrived.
  bool ReadBody();
  /// The complete request. The parser begins the next one.
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
  size_t consumed_ = 0;  ///< bytes of input_ that the current request has used
  bool broken_ = false;
  std::unique_ptr<State> state_;
};

}  // namespace evald::http

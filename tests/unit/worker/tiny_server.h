#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace evald::test {

/// The answer of a TinyServer to one request.
struct TinyReply {
  int status = 200;
  std::string body;
  int delay_ms = 0;
  bool close_midway = false;  ///< sends the head and half of the body, then closes
  std::string retry_after;    ///< a header, if not empty
};

/// An HTTP/1.1 server on 127.0.0.1 (Boost.Beast), with a thread for each connection. Any of these
/// threads calls `handler` with the path and the body.
class TinyServer {
 public:
  using Handler = std::function<TinyReply(const std::string& path, const std::string& body)>;
  explicit TinyServer(Handler handler);
  ~TinyServer();
  std::string url() const;
  int requests() const;  ///< requests to /v1/completions so far

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace evald::test

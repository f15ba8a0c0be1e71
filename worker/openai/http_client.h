#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace evald::openai {

/// One call to make. GET when `body` is empty, else POST of JSON.
struct HttpCall {
  uint64_t id = 0;  ///< the caller's
  std::string url;
  std::string body;
  std::chrono::milliseconds timeout{0};  ///< for the whole call
};

/// How it ended.
struct HttpReply {
  uint64_t id = 0;
  long status = 0;  ///< 0: no answer, see `error`
  std::string body;
  std::string error;  ///< libcurl's words when there was no whole answer
  bool timed_out = false;
  double retry_after_seconds = 0;  ///< of the header Retry-After, when it is a number
};

struct HttpOptions {
  std::chrono::milliseconds connect_timeout{10000};
  std::string bearer_token;  ///< "": none
  size_t reply_bytes_max = 64u << 20;
};

/// HTTP calls under way at once (libcurl's multi interface): http and https only, certificates
/// checked, no redirects, replies bounded. One thread at a time.
class HttpClient {
 public:
  explicit HttpClient(const HttpOptions& options);
  ~HttpClient();

  void Start(const HttpCall& call);
  /// The calls that ended; waits at most `budget` for the first.
  std::vector<HttpReply> Poll(std::chrono::milliseconds budget);
  size_t pending() const;
  void CancelAll();

  /// One call, start to end. Nothing else may be pending.
  HttpReply Do(const HttpCall& call);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald::openai

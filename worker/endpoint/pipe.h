#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "http_server/event_stream.h"

namespace evald::endpoint {

/// The bytes of a stream on their way to a client. A slow reader holds up nothing: they wait here,
/// and are no more than the answer.
class Pipe {
 public:
  explicit Pipe(std::function<void(std::function<void()>)> post) : post_(std::move(post)) {}

  /// Any thread.
  void Write(const std::string& bytes, bool last);
  bool gone() const { return gone_; }

  /// The HTTP server's end. `pipe` is told when the server drops it.
  static std::shared_ptr<http::EventSource> Source(std::shared_ptr<Pipe> pipe);

 private:
  class Reader;

  std::function<void(std::function<void()>)> post_;
  std::mutex mutex_;
  std::string bytes_;                     ///< under mutex_
  bool last_ = false;                     ///< under mutex_
  std::shared_ptr<std::function<void()>>  ///< server's thread only
      wake_ = std::make_shared<std::function<void()>>();
  std::atomic<bool> gone_{false};
};

}  // namespace evald::endpoint

#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace evald::http {

/// Bytes of another protocol over a connection after an answer 101 (Switching Protocols), both
/// ways, until either side ends. All calls come on the server's thread.
class Tunnel {
 public:
  virtual ~Tunnel() = default;
  virtual void Received(std::string_view bytes) = 0;
  /// Whether too many received bytes are unprocessed. The server asks now and then, and reads on
  /// when it is false again.
  virtual bool full() = 0;
  /// The next bytes to send, about `bytes_max`; "" if there are none.
  virtual std::string Next(size_t bytes_max) = 0;
  /// Whether this side ends once Next() is empty.
  virtual bool over() = 0;
  /// Sets `wake`, to be called from any thread when Next() or over() has changed.
  virtual void OnMore(std::function<void()> wake) = 0;
  /// The connection has ended. This is the last call.
  virtual void Ended() = 0;
};

}  // namespace evald::http

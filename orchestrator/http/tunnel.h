#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace evald::http {

/// What goes over a connection after an answer 101 (Switching Protocols): bytes of another
/// protocol, both ways, until either side ends. All calls come on the server's thread.
class Tunnel {
 public:
  virtual ~Tunnel() = default;
  virtual void Received(std::string_view bytes) = 0;
  /// More was received than has been looked at: the server reads on when this is false again. It
  /// asks now and then.
  virtual bool full() = 0;
  /// The next bytes to send, about `bytes_max`; "" when there is nothing.
  virtual std::string Next(size_t bytes_max) = 0;
  /// This side has nothing more to say once Next() is empty.
  virtual bool over() = 0;
  /// `wake` is to be called, from any thread, when Next() or over() has something new.
  virtual void OnMore(std::function<void()> wake) = 0;
  /// The connection has ended. The last call.
  virtual void Ended() = 0;
};

}  // namespace evald::http

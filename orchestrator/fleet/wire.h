#pragma once

#include <functional>
#include <string>

namespace evald {

/// A connection that carries lines both ways. Loop thread only; so are its callbacks. on_closed
/// comes once, and no callback comes after it.
class Wire {
 public:
  virtual ~Wire() = default;

  /// Called with a line without its newline. May replace itself and on_closed.
  std::function<void(const std::string& line)> on_line;
  /// `why` is empty if the other end closed in order.
  std::function<void(const std::string& why)> on_closed;

  /// Begins to read. Set the callbacks before.
  virtual void Read() = 0;
  /// Sends one line, its newline included, after those before it.
  virtual void Send(std::string line) = 0;
  virtual void Close(const std::string& why) = 0;
};

}  // namespace evald

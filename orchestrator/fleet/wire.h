#pragma once

#include <functional>
#include <string>

namespace evald {

/// A connection that carries lines both ways. Loop thread only; so are its callbacks. After
/// on_closed, which comes once, nothing more does.
class Wire {
 public:
  virtual ~Wire() = default;

  /// One line without its newline. May replace itself and on_closed.
  std::function<void(const std::string& line)> on_line;
  /// `why` is empty when the other end closed in order.
  std::function<void(const std::string& why)> on_closed;

  /// Begins to read; the callbacks are set by then.
  virtual void Read() = 0;
  /// Sends one line, its newline included, after those before it.
  virtual void Send(std::string line) = 0;
  virtual void Close(const std::string& why) = 0;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace evald::http {

/// The source of an event stream's bytes (Server-Sent Events, WHATWG HTML 9.2). The connection asks
/// it when it can write, so a follower who reads slowly costs a cursor and not a buffer. A follower
/// who does not take a piece within the server's write limit is disconnected, and may resume with
/// Last-Event-ID. Server's thread only.
class EventSource {
 public:
  virtual ~EventSource() = default;
  /// The next whole frames, about `bytes_max` together; "" if there is nothing new.
  virtual std::string Next(size_t bytes_max) = 0;
  /// Whether the stream ends once Next() returns "". Most have no end of their own.
  virtual bool over() const { return false; }
  /// Sets `wake`, to be called when Next() has frames again after it returned "", or when the
  /// stream is over.
  virtual void OnMore(std::function<void()> wake) = 0;
};

/// One frame: id, event and data fields. A newline in `data` begins another data field.
std::string EventFrame(int64_t id, std::string_view event, std::string_view data);

}  // namespace evald::http

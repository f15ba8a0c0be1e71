#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace evald::http {

/// Where an event stream (Server-Sent Events, WHATWG HTML 9.2) gets its bytes. The connection asks
/// when it can write, so that a follower who reads slowly costs a cursor and not a buffer; one who
/// does not take a piece within the server's write limit is disconnected and may resume with
/// Last-Event-ID. Server's thread only.
class EventSource {
 public:
  virtual ~EventSource() = default;
  /// The next whole frames, about `bytes_max` together; "" when there is nothing new.
  virtual std::string Next(size_t bytes_max) = 0;
  /// `wake` is to be called when Next() has something again. "" of Next() ends until then.
  virtual void OnMore(std::function<void()> wake) = 0;
};

/// One frame: id, event and data fields. A newline in `data` begins another data field.
std::string EventFrame(int64_t id, std::string_view event, std::string_view data);

}  // namespace evald::http

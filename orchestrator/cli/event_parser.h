#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evald::cli {

/// Parses a stream of Server-Sent Events (WHATWG HTML 9.2) from bytes as they come.
class EventParser {
 public:
  struct Message {
    std::string id;
    std::string data;
  };
  /// Appends the messages that are now complete. Ignores comments and other fields. Throws
  /// Error(kInput) for an event of more than 16 MiB.
  void Feed(std::string_view bytes, std::vector<Message>* messages);

 private:
  void Line(std::string_view line, std::vector<Message>* messages);
  std::string input_;
  Message next_;
  bool has_data_ = false;
};

}  // namespace evald::cli

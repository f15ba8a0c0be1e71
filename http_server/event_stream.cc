#include "http_server/event_stream.h"

#include <fmt/format.h>

#include "base/text.h"

namespace evald::http {

std::string EventFrame(int64_t id, std::string_view event, std::string_view data) {
  std::string frame = fmt::format("id: {}\n", id);
  std::string name;
  for (const char c : event) name += c == '\n' || c == '\r' ? ' ' : c;
  if (!name.empty()) frame += "event: " + name + "\n";
  std::string text(data);
  std::erase(text, '\r');
  for (const std::string& line : Split(text, '\n')) frame += "data: " + line + "\n";
  return frame + "\n";
}

}  // namespace evald::http

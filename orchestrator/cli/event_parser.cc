#include "orchestrator/cli/event_parser.h"

#include <algorithm>

#include "evald/error.h"

namespace evald::cli {
namespace {

constexpr size_t kFrameBytesMax = 16u << 20;

}  // namespace

void EventParser::Line(std::string_view line, std::vector<Message>* messages) {
  if (line.empty()) {
    if (has_data_) messages->push_back(std::move(next_));
    next_ = {};
    has_data_ = false;
    return;
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "id") next_.id = value;
  if (name == "data") {
    if (has_data_) next_.data += '\n';
    next_.data += value;
    has_data_ = true;
  }
}

void EventParser::Feed(std::string_view bytes, std::vector<Message>* messages) {
  input_.append(bytes);
  size_t begin = 0;
  for (size_t end; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line = std::string_view(input_).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    Line(line, messages);
  }
  input_.erase(0, begin);
  if (input_.size() + next_.data.size() > kFrameBytesMax) {
    throw Error(ErrorKind::kInput, "an event of the service is too long");
  }
}

}  // namespace evald::cli

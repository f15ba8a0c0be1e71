#include "base/placeholders.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace evald {
namespace {

bool IsNameByte(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

// The length of "{name}" that `text` begins with; 0 for none.
size_t LengthOf(std::string_view text) {
  if (!text.starts_with('{')) return 0;
  size_t end = 1;
  while (end < text.size() && IsNameByte(text[end])) ++end;
  return end > 1 && end < text.size() && text[end] == '}' ? end + 1 : 0;
}

// Calls `with` for each placeholder's name, and returns the text with the results in their places.
std::string ForEach(std::string_view text,
                    const std::function<std::string(const std::string& name)>& with) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("{{")) {
      const size_t inner = LengthOf(text.substr(1));
      if (inner > 0 && text.substr(1 + inner).starts_with('}')) {
        out += text.substr(1, inner);
        text.remove_prefix(inner + 2);
        continue;
      }
    }
    const size_t length = LengthOf(text);
    if (length > 0) {
      out += with(std::string(text.substr(1, length - 2)));
    } else {
      out.push_back(text.front());
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace

std::string UnknownPlaceholder(const std::string& text, const std::vector<std::string>& known) {
  std::string unknown;
  ForEach(text, [&](const std::string& name) {
    if (unknown.empty() && std::find(known.begin(), known.end(), name) == known.end())
      unknown = name;
    return "";
  });
  return unknown;
}

std::string ReplacePlaceholders(const std::string& text,
                                const std::map<std::string, std::string>& values) {
  return ForEach(text, [&](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "{" + name + "}" : found->second;
  });
}

}  // namespace evald

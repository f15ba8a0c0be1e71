#include "base/yaml_tabs.h"

#include <fmt/format.h>

namespace evald {

int LineIndentedByTab(std::string_view text, int from, int to) {
  for (int line = 1; line <= to && !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string_view here = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t begin = here.find_first_not_of(" \t\r");
    const bool blank = begin == std::string_view::npos || here[begin] == '#';
    if (line >= from && !blank && here.substr(0, begin).find('\t') != std::string_view::npos)
      return line;
  }
  return 0;
}

std::string TabSentence(int line) {
  return fmt::format("line {} is indented by a tab; YAML is indented by spaces", line);
}

}  // namespace evald

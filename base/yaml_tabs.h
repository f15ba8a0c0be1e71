#pragma once

#include <string>
#include <string_view>

namespace evald {

/// The number of the first line from `from` to `to` (counted from 1, both included) that is
/// indented by a tab; 0 for none. Blank lines and comments do not count. YAML takes spaces only,
/// and its parsers say it in many ways, or read something else than was meant.
int LineIndentedByTab(std::string_view text, int from, int to);

/// What is said of such a line: "line 3 is indented by a tab; YAML is indented by spaces".
std::string TabSentence(int line);

}  // namespace evald

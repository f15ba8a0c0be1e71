#pragma once

#include <string>
#include <string_view>

namespace evald {

/// The number of the first line from `from` to `to` (counted from 1, both included) that is
/// indented by a tab; 0 if there is none. Blank lines and comments do not count. YAML allows only
/// spaces. Its parsers report a tab in many ways, or give the text another meaning.
int LineIndentedByTab(std::string_view text, int from, int to);

/// The sentence about such a line: "line 3 is indented by a tab; YAML is indented by spaces".
std::string TabSentence(int line);

}  // namespace evald

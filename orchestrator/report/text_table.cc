#include "orchestrator/report/text_table.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/text.h"

namespace evald {
namespace {

// The columns that a terminal uses for the text.
size_t DisplayWidth(const std::string& text) {
  size_t width = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  utf8proc_ssize_t left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t used = std::max<utf8proc_ssize_t>(1, utf8proc_iterate(bytes, left, &c));
    width += c < 0 ? 1 : static_cast<size_t>(std::max(0, utf8proc_charwidth(c)));
    bytes += used;
    left -= used;
  }
  return width;
}

std::string Line(const TextRow& row, const std::vector<size_t>& widths,
                 const TextTableStyle& style) {
  std::string line(static_cast<size_t>(style.indent), ' ');
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string space(widths[i] - DisplayWidth(row[i]), ' ');
    const bool right = style.right.empty() ? i > 0 : style.right.at(i);
    line += (i > 0 ? "  " : "") + (right ? space + row[i] : row[i] + space);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string TextTable(std::vector<TextRow> rows, const TextTableStyle& style) {
  for (TextRow& row : rows) {
    for (std::string& cell : row) cell = PrintableLine(cell);
  }
  std::vector<size_t> widths(rows.at(0).size(), 0);
  for (const TextRow& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      widths.at(i) = std::max(widths[i], DisplayWidth(row[i]));
  }
  TextRow rule;
  for (const size_t width : widths) {
    rule.emplace_back();
    for (size_t cell = 0; cell < width; ++cell) rule.back() += "─";
  }
  std::string text = Line(rows[0], widths, style) + Line(rule, widths, style);
  for (size_t r = 1; r < rows.size(); ++r) text += Line(rows[r], widths, style);
  return text;
}

std::string GroupedDigits(int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace evald

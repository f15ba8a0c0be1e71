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

// The bytes of the characters of `text` that fit into `columns`.
size_t BytesThatFit(std::string_view text, size_t columns) {
  size_t width = 0, at = 0;
  while (at < text.size()) {
    size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    width += DisplayWidth(std::string(text.substr(at, next - at)));
    if (width > columns) break;
    at = next;
  }
  return at;
}

size_t WidthOf(const std::vector<size_t>& widths, size_t first, size_t gap) {
  size_t width = 0;
  for (size_t i = first; i < widths.size(); ++i) width += widths[i] + (i > first ? gap : 0);
  return width;
}

// The cells from `first` on, `gap` columns apart.
std::string Line(const TextRow& row, const std::vector<size_t>& widths, const TextTableStyle& style,
                 size_t first = 0, size_t gap = 2) {
  std::string line(static_cast<size_t>(style.indent), ' ');
  for (size_t i = first; i < row.size(); ++i) {
    const std::string space(widths[i] - DisplayWidth(row[i]), ' ');
    const bool right = style.right.empty() ? i > 0 : style.right.at(i);
    line += std::string(i > first ? gap : 0, ' ') + (right ? space + row[i] : row[i] + space);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

// The first cells of a row, on a line of their own; "" if all are empty.
std::string LeadLine(const TextRow& row, const TextTableStyle& style) {
  std::string line;
  for (size_t i = 0; i < style.lead; ++i) line += (line.empty() ? "" : "  ") + row[i];
  return Trim(line).empty() ? "" : CutToColumns(line, style.columns) + "\n";
}

std::string TwoLineTable(const std::vector<TextRow>& rows, const TextRow& rule,
                         const std::vector<size_t>& widths, const TextTableStyle& style) {
  const size_t gap = WidthOf(widths, style.lead, 2) <= style.columns ? 2 : 1;
  std::string text = LeadLine(rows[0], style);
  for (const TextRow& row : {rows[0], rule}) text += Line(row, widths, style, style.lead, gap);
  for (size_t r = 1; r < rows.size(); ++r)
    text += LeadLine(rows[r], style) + Line(rows[r], widths, style, style.lead, gap);
  return text;
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
  const bool wide = static_cast<size_t>(style.indent) + WidthOf(widths, 0, 2) > style.columns &&
                    style.columns > 0;
  if (wide && style.lead < rows[0].size()) return TwoLineTable(rows, rule, widths, style);
  std::string text = Line(rows[0], widths, style) + Line(rule, widths, style);
  for (size_t r = 1; r < rows.size(); ++r) text += Line(rows[r], widths, style);
  return text;
}

std::string CutToColumns(const std::string& text, size_t columns) {
  if (DisplayWidth(text) <= columns) return text;
  return text.substr(0, BytesThatFit(text, columns == 0 ? 0 : columns - 1)) + "…";
}

std::vector<std::string> Wrapped(const std::string& text, size_t columns, size_t indent,
                                 bool whole_words) {
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  std::vector<std::string> lines = {text.substr(0, first)};
  bool begins = true;  // the line has no word yet
  const auto go_on = [&] {
    lines.emplace_back(indent, ' ');
    begins = true;
  };
  for (std::string word : Split(std::string_view(text).substr(first), ' ')) {
    if (!begins && DisplayWidth(lines.back() + " " + word) > columns) go_on();
    if (!begins) lines.back() += ' ';
    while (!whole_words && DisplayWidth(lines.back() + word) > columns) {
      const size_t room = columns - std::min(columns, DisplayWidth(lines.back()));
      const size_t bytes = std::max<size_t>(1, BytesThatFit(word, room));
      lines.back() += word.substr(0, bytes);
      word.erase(0, bytes);
      go_on();
    }
    lines.back() += word;
    begins = begins && word.empty();
  }
  return lines;
}

std::string GroupedDigits(int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace evald

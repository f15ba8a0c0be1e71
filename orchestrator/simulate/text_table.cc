#include "orchestrator/simulate/text_table.h"

#include <algorithm>

#include "base/text.h"

namespace evald {
namespace {

std::string Line(const TextRow& row, const std::vector<size_t>& widths) {
  std::string line = " ";
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string space(widths[i] - CodePoints(row[i]), ' ');
    line += (i == 0 ? " " + row[i] + space : "  " + space + row[i]);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string TextTable(const std::vector<TextRow>& rows) {
  std::vector<size_t> widths(rows.at(0).size(), 0);
  for (const TextRow& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], CodePoints(row[i]));
  }
  TextRow rule;
  for (const size_t width : widths) {
    rule.emplace_back();
    for (size_t cell = 0; cell < width; ++cell) rule.back() += "─";
  }
  std::string text = Line(rows[0], widths) + Line(rule, widths);
  for (size_t r = 1; r < rows.size(); ++r) text += Line(rows[r], widths);
  return text;
}

std::string GroupedDigits(int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace evald

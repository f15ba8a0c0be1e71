#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace evald {

using TextRow = std::vector<std::string>;

struct TextTableStyle {
  std::vector<bool> right;  ///< columns that are flush right; empty: all except the first
  int indent = 0;           ///< spaces before each line
};

/// Rows of equal length for a terminal, with a rule under the first. Columns are two spaces apart
/// and as wide as a terminal shows their widest cell. Lines have no spaces at their ends.
/// Characters that a terminal would obey are spelled out (PrintableLine).
std::string TextTable(std::vector<TextRow> rows, const TextTableStyle& style = {});

/// 1,234,567
std::string GroupedDigits(int64_t value);

}  // namespace evald

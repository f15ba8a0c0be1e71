#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace evald {

using TextRow = std::vector<std::string>;

struct TextTableStyle {
  std::vector<bool> right;  ///< columns that are flush right; empty: all except the first
  int indent = 0;           ///< spaces before each line
  /// If the table is wider, the first `lead` cells of a row have a line of their own above the
  /// others. 0: the table is as wide as it is
  size_t columns = 0;
  size_t lead = 1;
};

/// Rows of equal length for a terminal, with a rule under the first. Columns are two spaces apart
/// and as wide as a terminal shows their widest cell. Lines have no spaces at their ends.
/// Characters that a terminal would obey are spelled out (PrintableLine).
std::string TextTable(std::vector<TextRow> rows, const TextTableStyle& style = {});

/// `text` if it fits into `columns` of a terminal; else its beginning and "…".
std::string CutToColumns(const std::string& text, size_t columns);

/// `text` in lines of at most `columns` columns, broken between words. All lines but the first
/// begin with `indent` spaces. A word that is longer than a line is broken, or, with `whole_words`,
/// has a longer line.
std::vector<std::string> Wrapped(const std::string& text, size_t columns, size_t indent,
                                 bool whole_words = false);

/// 1,234,567
std::string GroupedDigits(int64_t value);

}  // namespace evald

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace evald {

using TextRow = std::vector<std::string>;

/// Rows of equal length with a rule under the first; columns as wide as their widest cell, the first
/// flush left, the others flush right.
std::string TextTable(const std::vector<TextRow>& rows);

/// 1,234,567
std::string GroupedDigits(int64_t value);

}  // namespace evald

#pragma once

#include <string>
#include <vector>

namespace evald::tok {

/// Code points from first to last.
struct CodeRange {
  char32_t first;
  char32_t last;
};

/// The expression of a tokenizer.json with its properties (\p{L}, \P{Han}, \p{^N}, \d, \w, ...)
/// widened by the characters that tokenizers 0.23 knows and Debian 12's Oniguruma 6.9.8 does not:
/// those that Unicode added with versions 15 and 16 (properties.cc). Under (?i) a class also gets
/// the other cases of such letters, while a property outside of a class stays as it is, as
/// Oniguruma does it. Throws Error(kInput) that names a property, or a class such as [:alpha:], of
/// which it is not known how the two differ.
std::string WidenProperties(const std::string& expression);

/// The code points that \p{name} takes in such an expression, in no order. `name` must be served.
std::vector<CodeRange> PropertyRanges(const std::string& name);

}  // namespace evald::tok

#pragma once

#include <string>
#include <vector>

namespace evald::tok {

/// Code points from first to last.
struct CodeRange {
  char32_t first;
  char32_t last;
};

/// The expression of a tokenizer.json with wider properties (\p{L}, \P{Han}, \p{^N}, \d, \w, ...).
/// A property also gets the characters that Unicode added with versions 15 and 16: tokenizers 0.23
/// knows them, and Debian 12's Oniguruma 6.9.8 does not (properties.cc). Under (?i) a class also
/// gets the other cases of such letters. A property outside a class stays unchanged, as in
/// Oniguruma. Throws Error(kInput), which names the property or class (such as [:alpha:]), if the
/// difference between the two libraries is unknown.
std::string WidenProperties(const std::string& expression);

/// The code points that \p{name} matches in such an expression, in no order. `name` must be served.
std::vector<CodeRange> PropertyRanges(const std::string& name);

}  // namespace evald::tok

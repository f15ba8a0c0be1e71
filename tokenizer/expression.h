#pragma once

#include <string>

namespace evald::tok {

/// The expression of a tokenizer.json with \p{L} and \p{N} (and \P{L}, \P{N}) widened by the
/// letters and numbers that tokenizers 0.23 knows and Debian 12's Oniguruma 6.9.8 does not: those
/// that Unicode added with versions 15 and 16. Found by asking both about every code point. Other
/// properties are left as they are.
std::string WidenProperties(const std::string& expression);

}  // namespace evald::tok

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/expression.h"

namespace evald::tok {

/// What a Unicode property takes in tokenizers 0.23 (Unicode 16) and does not in Debian 12's
/// Oniguruma 6.9.8, found by asking both about every code point
/// (tests/oracle/tokenizer_properties.py). No property has lost a character but the ones that are
/// not served (C, Cn) and Mn, of which `less` says so.
struct Widening {
  std::vector<CodeRange> more;
  std::vector<CodeRange> less;
};

/// Of a property by its name in any spelling that Oniguruma takes ("L", "han", "Script_Extensions"
/// is none). Throws Error(kInput) that names a property that is not served, with those that are.
Widening WideningOf(std::string_view name);

}  // namespace evald::tok

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/expression.h"

namespace evald::tok {

/// The difference of a Unicode property between tokenizers 0.23 (Unicode 16) and Debian 12's
/// Oniguruma 6.9.8. tests/oracle/tokenizer_properties.py found it by asking both libraries about
/// every code point. Only Mn (see `less`) and the properties that are not served (C, Cn) have lost
/// characters.
struct Widening {
  std::vector<CodeRange> more;
  std::vector<CodeRange> less;
};

/// The widening of a property. Its name may have any spelling that Oniguruma accepts: "L", "han"
/// (not "Script_Extensions"). Throws Error(kInput) for a property that is not served. The error
/// names it and those that are served.
Widening WideningOf(std::string_view name);

}  // namespace evald::tok

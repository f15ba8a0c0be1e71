#pragma once

#include <string>

namespace evald {

/// A pattern of Python's `re` rewritten for Oniguruma's own syntax, so that it matches what Python
/// (3.11, str patterns) matches.
struct PythonPattern {
  std::string pattern;  ///< for ONIG_SYNTAX_ONIGURUMA
  bool dot_all = false;
  bool ignore_case = false;
};

/// Rewrites `pattern`. These differ between the two and are made equal: \w, \b (no combining marks,
/// no connectors but '_'), \s (includes U+001C..1F), ^ and $ with and without (?m), \Z, nested
/// brackets and && in classes, {n}? and {n,m}+, names of groups, flags at the start and (?i:...).
/// Throws Error(kInput) that quotes the pattern if Python refuses it (unknown escapes, multiple
/// repeats, flags in the middle) and for what is not supported: (?x), (?L), \N{...}. Known to
/// differ, with (?i): 'i' does not match U+0130 and U+0131, nor U+00DF U+1E9E. Rules:
/// https://docs.python.org/3.11/library/re.html, "Regular Expression Syntax".
PythonPattern TranslatePythonPattern(const std::string& pattern, bool ignore_case, bool dot_all,
                                     bool multiline);

}  // namespace evald

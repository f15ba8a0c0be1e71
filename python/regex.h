#pragma once

#include <string>

#include "base/regex.h"

namespace evald {

struct PythonRegexFlags {
  bool dot_all = false;      ///< re.DOTALL
  bool ignore_case = false;  ///< re.IGNORECASE
  bool multiline = false;    ///< re.MULTILINE
};

/// A pattern of Python's `re`, compiled: it matches what Python matches (python/pattern.h).
class PythonRegex : public Regex {
 public:
  /// Throws Error(kInput) that quotes the pattern and says what is wrong with it.
  explicit PythonRegex(const std::string& pattern, PythonRegexFlags flags = {});
};

}  // namespace evald

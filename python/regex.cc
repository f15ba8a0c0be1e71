#include "python/regex.h"

#include "python/pattern.h"

namespace evald {
namespace {

Regex Compile(const std::string& pattern, PythonRegexFlags flags) {
  const PythonPattern translated =
      TranslatePythonPattern(pattern, flags.ignore_case, flags.dot_all, flags.multiline);
  RegexOptions options;
  options.dot_all = translated.dot_all;
  options.ignore_case = translated.ignore_case;
  options.fold_one_to_one = true;  // Python folds one character into one
  options.timed = true;
  options.shown = pattern;
  return Regex(translated.pattern, options);
}

}  // namespace

PythonRegex::PythonRegex(const std::string& pattern, PythonRegexFlags flags)
    : Regex(Compile(pattern, flags)) {}

}  // namespace evald

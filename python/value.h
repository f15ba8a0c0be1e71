#pragma once

#include <string>
#include <string_view>

#include "evald/json.h"

// Python's view of JSON values, for code that must do as lm-evaluation-harness does.
namespace evald {

/// str(value): "None", "True", "1.0", "['a', 1]".
std::string PythonStr(const Json& value);

/// repr(value). Both throw Error(kInput) for integers beyond 64 bits and for more than 120 levels.
std::string PythonRepr(const Json& value);

/// repr(str).
std::string PythonQuoted(std::string_view text);

/// a == b: 1 equals 1.0 and True, dicts compare without order.
bool PythonEquals(const Json& a, const Json& b);

/// ast.literal_eval(text): strings, numbers, lists, tuples (as lists), dicts, True, False, None.
/// Throws Error(kInput) for anything else, for a dict key that is not a string, for integers beyond
/// 64 bits, bytes, sets and complex numbers, and for text nested deeper than 100.
Json PythonLiteral(std::string_view text);

/// Appends the text of a Python string literal's body (between the quotes) with its escapes
/// resolved. Throws Error(kInput) for a broken or unknown one (\N{...} is not known).
std::string PythonUnescape(std::string_view body);

}  // namespace evald

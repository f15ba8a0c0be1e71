#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Python's numbers as text, and text as numbers.
namespace evald::python {

/// repr(float): the shortest digits that give the number back.
std::string FloatRepr(double value);

/// a == b of an int and a float, exactly.
bool Equal(int64_t a, double b);

/// round(value, digits) of Python: half to even, correctly rounded.
double RoundDouble(double value, int digits);

/// float(text) and int(text, base) of Python; nothing when Python raises ValueError. An integer
/// beyond 64 bits throws Error(kInput).
std::optional<double> ParseFloat(std::string_view text);
std::optional<int64_t> ParseInt(std::string_view text, int base);

/// "%.*f" and its like, for `conversion` in e, f, g.
std::string FormatDouble(double value, char conversion, int precision, bool alternate = false);

}  // namespace evald::python

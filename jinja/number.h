#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

// Python's arithmetic on 64-bit integers and doubles.
namespace evald::jinja {

/// repr(float): the shortest digits that give the number back.
std::string FloatRepr(double value);

enum class Arithmetic { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };

/// `a op b` of two numbers. Throws Error(kInput) for a division by zero, a result beyond 64 bits,
/// and a complex result.
Value Compute(Arithmetic op, const Value& a, const Value& b);
Value Negate(const Value& a);

/// round(value, digits) of Python: half to even, correctly rounded.
double RoundDouble(double value, int digits);

/// float(text) and int(text, base) of Python; nothing when Python raises ValueError. An integer
/// beyond 64 bits throws Error(kInput).
std::optional<double> ParseFloat(std::string_view text);
std::optional<int64_t> ParseInt(std::string_view text, int base);

/// "%.*f" and its like, for `conversion` in e, f, g.
std::string FormatDouble(double value, char conversion, int precision, bool alternate = false);

}  // namespace evald::jinja

#pragma once

#include "jinja/value.h"

// Python's arithmetic on 64-bit integers and doubles.
namespace evald::jinja {

enum class Arithmetic { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };

/// `a op b` for two numbers. Throws Error(kInput) for a division by zero, a result beyond 64 bits,
/// or a complex result.
Value Compute(Arithmetic op, const Value& a, const Value& b);
Value Negate(const Value& a);

}  // namespace evald::jinja

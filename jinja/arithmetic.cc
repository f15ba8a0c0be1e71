#include "jinja/arithmetic.h"

#include <cmath>

#include "evald/error.h"

namespace evald::jinja {
namespace {

[[noreturn]] void Fail(std::string message) { throw Error(ErrorKind::kInput, std::move(message)); }

[[noreturn]] void FailOverflow() { Fail("an integer beyond 64 bits is not supported"); }

// Python's float_divmod (Objects/floatobject.c): the remainder has the sign of the divisor.
double FloatMod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) mod += b;
  } else {
    mod = std::copysign(0.0, b);
  }
  return mod;
}

double FloatFloorDiv(double a, double b) {
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1.0;
  if (div == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(div);
  if (div - floored > 0.5) floored += 1.0;
  return floored;
}

int64_t IntPow(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) FailOverflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      if (result == 0) return 0;
      FailOverflow();
    }
  }
  return result;
}

Value ComputeInts(Arithmetic op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case Arithmetic::kAdd:
      if (__builtin_add_overflow(a, b, &out)) FailOverflow();
      return Value(out);
    case Arithmetic::kSub:
      if (__builtin_sub_overflow(a, b, &out)) FailOverflow();
      return Value(out);
    case Arithmetic::kMul:
      if (__builtin_mul_overflow(a, b, &out)) FailOverflow();
      return Value(out);
    case Arithmetic::kDiv:
      if (b == 0) Fail("division by zero");
      return Value(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Arithmetic::kFloorDiv:
    case Arithmetic::kMod: {
      if (b == 0) Fail("integer division or modulo by zero");
      if (a == INT64_MIN && b == -1) FailOverflow();
      int64_t quotient = a / b;
      int64_t rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        --quotient;
        rest += b;
      }
      return Value(op == Arithmetic::kMod ? rest : quotient);
    }
    case Arithmetic::kPow:
      if (b < 0) {
        if (a == 0) Fail("0 cannot be raised to a negative power");
        return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
      }
      return Value(IntPow(a, b));
  }
  Fail("unknown operator");
}

Value ComputeDoubles(Arithmetic op, double a, double b) {
  switch (op) {
    case Arithmetic::kAdd:
      return Value(a + b);
    case Arithmetic::kSub:
      return Value(a - b);
    case Arithmetic::kMul:
      return Value(a * b);
    case Arithmetic::kDiv:
      if (b == 0) Fail("float division by zero");
      return Value(a / b);
    case Arithmetic::kFloorDiv:
      if (b == 0) Fail("float floor division by zero");
      return Value(FloatFloorDiv(a, b));
    case Arithmetic::kMod:
      if (b == 0) Fail("float modulo by zero");
      return Value(FloatMod(a, b));
    case Arithmetic::kPow:
      if (a == 0 && b < 0) Fail("0.0 cannot be raised to a negative power");
      if (a < 0 && std::floor(b) != b) Fail("a complex number is not supported");
      if (const double result = std::pow(a, b);
          !std::isinf(result) || std::isinf(a) || std::isinf(b)) {
        return Value(result);
      }
      Fail("a float power is out of range");
  }
  Fail("unknown operator");
}

}  // namespace

Value Compute(Arithmetic op, const Value& a, const Value& b) {
  if (a.IsInteger() && b.IsInteger()) return ComputeInts(op, a.AsInt(), b.AsInt());
  return ComputeDoubles(op, a.AsDouble(), b.AsDouble());
}

Value Negate(const Value& a) {
  if (!a.IsInteger()) return Value(-a.AsDouble());
  return Compute(Arithmetic::kSub, Value(int64_t{0}), a);
}

}  // namespace evald::jinja

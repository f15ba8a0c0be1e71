#include "jinja/number.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "evald/error.h"
#include "jinja/unicode.h"

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

std::string StripUnderscores(std::string_view text, bool* valid) {
  std::string out;
  *valid = true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool inside = i > 0 && i + 1 < text.size() &&
                        std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 &&
                        std::isalnum(static_cast<unsigned char>(text[i + 1])) != 0;
    if (!inside) *valid = false;
  }
  return out;
}

std::string StripSpace(std::string_view text) {
  const std::u32string all = Decode(text);
  size_t begin = 0;
  size_t end = all.size();
  while (begin < end && IsSpace(all[begin])) ++begin;
  while (end > begin && IsSpace(all[end - 1])) --end;
  return Encode(std::u32string_view(all).substr(begin, end - begin));
}

}  // namespace

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::scientific);
  std::string_view text(buffer.data(), static_cast<size_t>(result.ptr - buffer.data()));
  std::string sign;
  if (text.front() == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string mantissa = digits.substr(0, 1);
    if (count > 1) mantissa += "." + digits.substr(1);
    return sign + mantissa + fmt::format("e{}{:02d}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(-exponent - 1, '0') + digits;
  if (count <= exponent + 1) return sign + digits + std::string(exponent + 1 - count, '0') + ".0";
  return sign + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}

Value Compute(Arithmetic op, const Value& a, const Value& b) {
  if (a.IsInteger() && b.IsInteger()) return ComputeInts(op, a.AsInt(), b.AsInt());
  return ComputeDoubles(op, a.AsDouble(), b.AsDouble());
}

Value Negate(const Value& a) {
  if (!a.IsInteger()) return Value(-a.AsDouble());
  return Compute(Arithmetic::kSub, Value(int64_t{0}), a);
}

std::string FormatDouble(double value, char conversion, int precision, bool alternate) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const char format[] = {'%',
                         alternate ? '#' : '.',
                         alternate ? '.' : '*',
                         alternate ? '*' : conversion,
                         alternate ? conversion : '\0',
                         '\0'};
  const int length = std::snprintf(nullptr, 0, format, precision, value);
  std::string out(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(out.data(), out.size(), format, precision, value);
  out.pop_back();
  return out;
}

double RoundDouble(double value, int digits) {
  if (!std::isfinite(value)) return value;
  if (digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) return std::strtod(FormatDouble(value, 'f', digits).c_str(), nullptr);
  // snprintf cannot round before the point; 10^n is exact for n <= 22.
  const double scale = std::pow(10.0, -digits);
  return std::nearbyint(value / scale) * scale;
}

std::optional<double> ParseFloat(std::string_view text) {
  bool valid = false;
  const std::string digits = StripUnderscores(StripSpace(text), &valid);
  if (!valid || digits.empty()) return std::nullopt;
  for (char c : digits) {
    if (c == 'x' || c == 'X' || c == '(' || std::isspace(static_cast<unsigned char>(c)) != 0) {
      return std::nullopt;
    }
  }
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> ParseInt(std::string_view text, int base) {
  bool valid = false;
  std::string digits = StripUnderscores(StripSpace(text), &valid);
  if (!valid || digits.empty()) return std::nullopt;
  bool negative = false;
  if (digits[0] == '-' || digits[0] == '+') {
    negative = digits[0] == '-';
    digits.erase(0, 1);
  }
  const char prefix = digits.size() > 2 && digits[0] == '0'
                          ? static_cast<char>(std::tolower(static_cast<unsigned char>(digits[1])))
                          : '\0';
  const int prefixed = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
  if (prefixed != 0 && (base == prefixed || base == 0)) {
    digits.erase(0, 2);
    base = prefixed;
  } else if (base == 0) {
    base = 10;
    if (digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos) {
      return std::nullopt;
    }
  }
  if (base < 2 || base > 36) return std::nullopt;
  uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ptr != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range || value > static_cast<uint64_t>(INT64_MAX)) {
    FailOverflow();
  }
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

}  // namespace evald::jinja

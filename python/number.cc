#include "python/number.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "evald/error.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald::python {
namespace {

[[noreturn]] void FailOverflow() {
  throw Error(ErrorKind::kInput, "an integer beyond 64 bits is not supported");
}

// Decimal digits of all scripts as ASCII ones, as int() and float() read them. Unicode has them in
// rows of ten, from zero to nine.
std::string WithAsciiDigits(std::string_view text) {
  if (IsAscii(text)) return std::string(text);
  std::string out;
  for (const char32_t c : Decode(text)) {
    if (c < 0x80 || !IsDecimal(c)) {
      AppendUtf8(c, &out);
      continue;
    }
    char32_t zero = c;
    while (IsDecimal(zero - 1)) --zero;
    out += static_cast<char>('0' + (c - zero) % 10);
  }
  return out;
}

std::string StripUnderscores(const std::string& text, bool* valid) {
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

bool Equal(int64_t a, double b) {
  return static_cast<long double>(a) == static_cast<long double>(b);
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
  const std::string digits = StripUnderscores(WithAsciiDigits(Strip(text)), &valid);
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
  std::string digits = StripUnderscores(WithAsciiDigits(Strip(text)), &valid);
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

}  // namespace evald::python

#include "metrics/scoring/output_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "python/str.h"

namespace evald {
namespace {

// A finite number: digits without zeros at their ends, times ten to the power of `exponent`.
struct Decimal {
  enum class Kind { kFinite, kInfinite, kNan };
  Kind kind = Kind::kFinite;
  bool negative = false;
  std::string digits;  // "" for zero
  int64_t exponent = 0;
};

// Decimal's largest exponent has 18 digits (MAX_EMAX of CPython's decimal.h).
constexpr size_t kExponentDigitsMax = 18;

bool IsDecimalDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view TakeDigits(std::string_view* text) {
  const size_t end = static_cast<size_t>(
      std::find_if_not(text->begin(), text->end(), IsDecimalDigit) - text->begin());
  const std::string_view digits = text->substr(0, end);
  text->remove_prefix(end);
  return digits;
}

std::optional<Decimal> ParseSpecial(std::string_view text, Decimal number) {
  const std::string lower = Lower(text);
  if (lower == "inf" || lower == "infinity") {
    number.kind = Decimal::Kind::kInfinite;
    return number;
  }
  std::string_view rest = lower;
  if (rest.starts_with('s')) rest.remove_prefix(1);
  if (!rest.starts_with("nan")) return std::nullopt;
  rest.remove_prefix(3);
  if (!std::all_of(rest.begin(), rest.end(), IsDecimalDigit)) return std::nullopt;
  number.kind = Decimal::Kind::kNan;
  return number;
}

// Reads the exponent behind the digits. False for anything else.
bool TakeExponent(std::string_view text, int64_t* exponent) {
  *exponent = 0;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::string_view digits = TakeDigits(&text);
  if (digits.empty() || !text.empty()) return false;
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  if (digits.size() > kExponentDigitsMax) return false;
  for (const char c : digits) *exponent = *exponent * 10 + (c - '0');
  if (negative) *exponent = -*exponent;
  return true;
}

// As `Decimal(text)`, which ignores underscores. Nothing where it raises.
std::optional<Decimal> ParseDecimal(std::string_view raw) {
  std::string plain(raw);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  std::string_view text = plain;
  Decimal number;
  number.negative = text.starts_with('-');
  if (number.negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  if (!IsDecimalDigit(text[0]) && text[0] != '.') return ParseSpecial(text, number);
  number.digits = TakeDigits(&text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string_view fraction = TakeDigits(&text);
    if (number.digits.empty() && fraction.empty()) return std::nullopt;
    number.exponent = -static_cast<int64_t>(fraction.size());
    number.digits += fraction;
  }
  int64_t exponent = 0;
  if (!TakeExponent(text, &exponent)) return std::nullopt;
  number.exponent += exponent;
  const size_t end = number.digits.find_last_not_of('0') + 1;
  number.exponent += static_cast<int64_t>(number.digits.size() - end);
  number.digits.resize(end);
  number.digits.erase(0, std::min(number.digits.find_first_not_of('0'), number.digits.size()));
  return number;
}

bool Equal(const Decimal& a, const Decimal& b) {
  if (a.kind != b.kind || a.kind == Decimal::Kind::kNan) return false;
  if (a.kind == Decimal::Kind::kInfinite) return a.negative == b.negative;
  if (a.digits.empty() || b.digits.empty()) return a.digits.empty() && b.digits.empty();
  return a.negative == b.negative && a.exponent == b.exponent && a.digits == b.digits;
}

std::vector<std::string_view> PartsOf(std::string_view line) {
  std::vector<std::string_view> words;
  python::Split(line, -1, false, [&](std::string_view word) { words.push_back(word); });
  return words;
}

bool SameNumbers(std::string_view found, std::string_view expected) {
  const std::vector<std::string_view> left = PartsOf(found);
  const std::vector<std::string_view> right = PartsOf(expected);
  return left.size() == right.size() &&
         std::equal(left.begin(), left.end(), right.begin(), SameDecimal);
}

std::vector<std::string_view> StrippedLines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::string_view rest = python::Strip(text);
  for (;;) {
    const size_t end = rest.find('\n');
    lines.push_back(python::Strip(rest.substr(0, end)));
    if (end == std::string_view::npos) return lines;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

bool SameDecimal(std::string_view a, std::string_view b) {
  const std::optional<Decimal> left = ParseDecimal(a);
  const std::optional<Decimal> right = ParseDecimal(b);
  return left && right && Equal(*left, *right);
}

bool SameOutput(std::string_view found, std::string_view expected, std::string* why) {
  const std::vector<std::string_view> left = StrippedLines(found);
  const std::vector<std::string_view> right = StrippedLines(expected);
  constexpr size_t kShown = 60;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i] == right[i] || SameNumbers(left[i], right[i])) continue;
    *why = fmt::format("line {} is '{}', expected '{}'", i + 1, Shortened(left[i], kShown),
                       Shortened(right[i], kShown));
    return false;
  }
  if (left.size() == right.size()) return true;
  *why = fmt::format("found {} lines, expected {}", left.size(), right.size());
  return false;
}

std::string HashOfOutput(std::string_view output) {
  std::string text;
  for (const std::string_view line : StrippedLines(output)) text.append(line).append("\n");
  text.pop_back();
  return Sha256Hex(text);
}

}  // namespace evald

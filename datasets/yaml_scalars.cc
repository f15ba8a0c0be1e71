#include "datasets/yaml_scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/text.h"
#include "evald/error.h"
#include "python/number.h"
#include "python/regex.h"

namespace evald {
namespace {

constexpr size_t kNumberBytesMax = 400;

[[noreturn]] void Fail(const std::string& message) { throw Error(ErrorKind::kInput, message); }

// The patterns of the implicit types. Each takes the whole text.
PythonRegex Whole(const std::string& pattern) { return PythonRegex("\\A(?:" + pattern + ")\\Z"); }

bool Matches(const Regex& regex, const std::string& text) {
  Regex::Match match;
  return IsUtf8(text) && regex.Search(text, 0, &match);
}

bool LooksLikeInteger(const std::string& text) {
  static const PythonRegex kPattern = Whole(
      R"([-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+)");
  return Matches(kPattern, text);
}

bool LooksLikeFloat(const std::string& text) {
  static const PythonRegex kPattern =
      Whole(R"([-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?)"
            R"(|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))");
  return Matches(kPattern, text);
}

bool LooksLikeDate(const std::string& text) {
  static const PythonRegex kPattern = Whole(
      R"([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?)"
      R"(([ \t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?))?)");
  return Matches(kPattern, text);
}

bool IsNullText(const std::string& text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::optional<bool> BooleanOf(const std::string& text) {
  static const std::set<std::string> kTrue = {"yes",  "Yes", "YES", "true", "True",
                                              "TRUE", "on",  "On",  "ON"};
  static const std::set<std::string> kFalse = {"no",    "No",  "NO",  "false", "False",
                                               "FALSE", "off", "Off", "OFF"};
  if (kTrue.count(text) != 0) return true;
  if (kFalse.count(text) != 0) return false;
  return std::nullopt;
}

[[noreturn]] void RefuseNumber(const std::string& text, const char* type) {
  Fail(fmt::format("'{}' is no {}", Shortened(text, 40), type));
}

// The number without its sign and underscores. `negative`: its sign was a minus.
std::string WithoutSign(std::string text, bool* negative) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  *negative = text.starts_with('-');
  if (text.starts_with('-') || text.starts_with('+')) text.erase(0, 1);
  return text;
}

int64_t Digits(const std::string& digits, int base, const std::string& shown,
               bool negative = false) {
  if (digits.empty() || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    RefuseNumber(shown, "integer");
  }
  std::optional<int64_t> value;
  try {
    value = python::ParseInt((negative ? "-" : "") + digits, base);
  } catch (const Error&) {
    Fail(fmt::format("the integer {} is beyond 64 bits", Shortened(shown, 40)));
  }
  if (!value)
    Fail(fmt::format("the integer {} is no number of base {}", Shortened(shown, 40), base));
  return *value;
}

// Numbers of base sixty: 1:30 is 90.
int64_t BaseSixty(const std::string& text, const std::string& shown) {
  int64_t value = 0;
  for (const std::string& part : Split(text, ':')) {
    if (value > INT64_MAX / 61)
      Fail(fmt::format("the integer {} is beyond 64 bits", Shortened(shown, 40)));
    value = value * 60 + Digits(part, 10, shown);
  }
  return value;
}

Json IntegerOf(const std::string& text) {
  bool negative = false;
  const std::string digits = WithoutSign(text, &negative);
  if (digits.starts_with("0b")) return Digits(digits.substr(2), 2, text, negative);
  if (digits.starts_with("0x")) return Digits(digits.substr(2), 16, text, negative);
  if (digits.size() > 1 && digits[0] == '0') return Digits(digits, 8, text, negative);
  if (digits.find(':') == std::string::npos) return Digits(digits, 10, text, negative);
  const int64_t value = BaseSixty(digits, text);
  return negative ? -value : value;
}

double Float(const std::string& digits, const std::string& shown) {
  const auto value = python::ParseFloat(digits);
  if (!value || !std::isfinite(*value)) RefuseNumber(shown, "finite number");
  return *value;
}

Json FloatOf(const std::string& text) {
  bool negative = false;
  const std::string digits = WithoutSign(text, &negative);
  double value = 0;
  if (digits.find(':') == std::string::npos) {
    value = Float(digits, text);
  } else {
    double base = 1;
    std::vector<std::string> parts = Split(digits, ':');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part, base *= 60)
      value += Float(*part, text) * base;
  }
  return negative ? -value : value;
}

}  // namespace

Json PlainScalar(const std::string& text) {
  if (IsNullText(text)) return nullptr;
  if (const auto boolean = BooleanOf(text)) return *boolean;
  if (text == "=") Fail("a plain '=' has no meaning; put it in quotes");
  if (text.size() > kNumberBytesMax ||
      std::string("+-.0123456789").find(text[0]) == std::string::npos)
    return text;
  if (LooksLikeFloat(text)) {
    const bool special = text.find_first_of("nN") != std::string::npos;
    if (special)
      Fail(fmt::format("'{}' would be read as a special number; put it in quotes", text));
    return FloatOf(text);
  }
  if (LooksLikeInteger(text)) return IntegerOf(text);
  if (LooksLikeDate(text))
    Fail(fmt::format("'{}' would be read as a date; put it in quotes", text));
  return text;
}

Json TaggedScalar(const std::string& type, const std::string& text) {
  if (type == "null") return nullptr;
  if (type == "bool") {
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    const auto boolean = BooleanOf(lower);
    if (!boolean) RefuseNumber(text, "boolean");
    return *boolean;
  }
  if (text.size() > kNumberBytesMax) RefuseNumber(text, "number");
  const std::string number(Trim(text));  // like Python's int() and float()
  return type == "int" ? IntegerOf(number) : FloatOf(number);
}

}  // namespace evald

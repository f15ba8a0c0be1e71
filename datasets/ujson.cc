#include "datasets/ujson.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr int kDecimals = 10;
constexpr double kPowerOfDecimals = 1e10;
constexpr int kFractionDigitsMax = 15;

// Whether the text is a number that JSON does not allow, such as 007 or 1. ; a text like 2020-01-01
// is none.
bool IsLooseNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return false;
  const size_t sign = text.find_first_of("+-");
  return sign == std::string_view::npos || text[sign - 1] == 'e' || text[sign - 1] == 'E';
}

}  // namespace

std::string UjsonText(double exact) {
  const double value = UjsonNumber(fmt::format("{}", exact));
  const double magnitude = std::fabs(value);
  if (magnitude > 1e16 - 1 || (magnitude != 0 && magnitude < 1e-15))
    return fmt::format("{:.10g}", value);
  auto whole = static_cast<uint64_t>(magnitude);
  const double scaled = (magnitude - static_cast<double>(whole)) * kPowerOfDecimals;
  auto fraction = static_cast<uint64_t>(scaled);
  const double rest = scaled - static_cast<double>(fraction);
  // Halves are rounded up after an odd digit, and after no digit.
  if (rest > 0.5 || (rest == 0.5 && (fraction == 0 || fraction % 2 == 1))) ++fraction;
  if (static_cast<double>(fraction) >= kPowerOfDecimals) {
    fraction = 0;
    ++whole;
  }
  std::string digits = fraction == 0 ? "0" : fmt::format("{:0{}}", fraction, kDecimals);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  return fmt::format("{}{}.{}", value < 0 ? "-" : "", whole, digits);
}

double UjsonNumber(std::string_view text) {
  static constexpr double kNegativePowers[] = {1.0,   0.1,   0.01,  1e-3, 1e-4,  1e-5,
                                               1e-6,  1e-7,  1e-8,  1e-9, 1e-10, 1e-11,
                                               1e-12, 1e-13, 1e-14, 1e-15};
  size_t at = text.starts_with('-') ? 1 : 0;
  const double sign = at == 1 ? -1.0 : 1.0;
  uint64_t whole = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    whole = whole * 10 + static_cast<uint64_t>(text[at] - '0');
  }
  double fraction = 0;
  int digits = 0;
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      if (digits == kFractionDigitsMax) continue;
      fraction = fraction * 10.0 + (text[at] - '0');
      ++digits;
    }
  }
  const double value = (static_cast<double>(whole) + fraction * kNegativePowers[digits]) * sign;
  if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) return value;
  ++at;
  const double direction = at < text.size() && text[at] == '-' ? -1.0 : 1.0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  double exponent = 0;
  for (; at < text.size(); ++at) exponent = exponent * 10.0 + (text[at] - '0');
  return value * std::pow(10.0, exponent * direction);
}

std::optional<Json> UjsonScalar(const std::string& given) {
  const std::string_view white = " \t\r\n";
  const size_t begin = given.find_first_not_of(white);
  if (begin == std::string::npos) return std::nullopt;
  const std::string text = given.substr(begin, given.find_last_not_of(white) + 1 - begin);
  const auto refuse = [&given]() {
    throw Error(ErrorKind::kInput,
                fmt::format("the text '{}' stands in a column of mixed types, where the datasets "
                            "library reads it as JSON",
                            Shortened(given, 60)),
                "write the column with one type");
  };
  const Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    if (text == "NaN" || text == "Infinity" || text == "-Infinity" || IsLooseNumber(text)) refuse();
    return std::nullopt;
  }
  if (value.is_structured()) refuse();
  if (value.is_number_float()) return UjsonNumber(text);
  return value;
}

}  // namespace evald

#include "metrics/scoring/math_strings.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "evald/error.h"
#include "python/number.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr std::string_view kBox = "\\boxed";
constexpr std::string_view kBoxSpace = "\\boxed ";
constexpr std::string_view kBoxBrace = "\\boxed{";
constexpr size_t kNowhere = std::string_view::npos;

std::vector<std::string> SplitMath(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  python::Split(text, separator, -1, false,
                [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}

bool HoldsMath(std::string_view text, std::string_view part) { return text.find(part) != kNowhere; }

// The bytes of the first character; 0 for "".
size_t FirstBytes(std::string_view text) {
  size_t bytes = text.empty() ? 0 : 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) ++bytes;
  return bytes;
}

// The place behind the brace that closes the first one at or behind `begin`, as the harness counts;
// npos if none does.
size_t BehindBraces(std::string_view text, size_t begin) {
  int64_t open = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '{') ++open;
    if (text[i] == '}' && --open == 0) return i + 1;
  }
  return kNowhere;
}

// fix_sqrt: "\sqrt3" becomes "\sqrt{3}". Nothing if nothing follows a "\sqrt".
std::optional<std::string> FixRoots(const std::string& text) {
  const std::vector<std::string> parts = SplitMath(text, "\\sqrt");
  std::string fixed = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part.empty()) return std::nullopt;
    const size_t first = FirstBytes(part);
    fixed += part[0] == '{' ? "\\sqrt" + part
                            : "\\sqrt{" + part.substr(0, first) + "}" + part.substr(first);
  }
  return fixed;
}

// fix_fracs: "\frac12" becomes "\frac{1}{2}". The text stays what it is if one character alone
// follows a "\frac"; nothing if none does.
std::optional<std::string> FixFractions(const std::string& text) {
  const std::vector<std::string> parts = SplitMath(text, "\\frac");
  std::string fixed = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part.empty()) return std::nullopt;
    fixed += "\\frac";
    if (part[0] == '{') {
      fixed += part;
      continue;
    }
    const std::string above = part.substr(0, FirstBytes(part));
    const std::string rest = part.substr(above.size());
    if (rest.empty()) return text;
    const std::string below = rest.substr(0, FirstBytes(rest));
    fixed += "{" + above + "}";
    fixed += below == "{" ? below : "{" + below + "}";
    fixed += rest.substr(below.size());
  }
  return fixed;
}

// Whether int(text) of Python gives a number.
bool IsInteger(const std::string& text) {
  constexpr auto kDigitsMax = 4300;  // sys.int_info.default_max_str_digits
  try {
    return python::ParseInt(text, 10).has_value();
  } catch (const Error&) {  // beyond 64 bits
    const std::u32string all = python::Decode(text);
    return std::count_if(all.begin(), all.end(), python::IsDecimal) <= kDigitsMax;
  }
}

// Whether the text is an integer as Python writes it.
bool IsPlainInteger(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (text == "0") return false;
  }
  return !text.empty() && text.find_first_not_of("0123456789") == kNowhere &&
         (text.size() == 1 || text[0] != '0');
}

// fix_a_slash_b: "1/2" becomes "\frac{1}{2}".
std::optional<std::string> FixSlash(const std::string& text, SlashRule rule) {
  const std::vector<std::string> parts = SplitMath(text, "/");
  if (parts.size() != 2) return text;
  if (!IsInteger(parts[0]) || !IsInteger(parts[1]))
    return rule == SlashRule::kGoesOn ? std::optional(text) : std::nullopt;
  if (!IsPlainInteger(parts[0]) || !IsPlainInteger(parts[1])) return text;
  return "\\frac{" + parts[0] + "}{" + parts[1] + "}";
}

// remove_right_units. Nothing if there are several.
std::optional<std::string> RemoveUnits(const std::string& text) {
  const std::vector<std::string> parts = SplitMath(text, "\\text{ ");
  if (parts.size() > 2) return std::nullopt;
  return parts[0];
}

// "k = 5" becomes " 5".
std::string WithoutName(const std::string& text) {
  const std::vector<std::string> parts = SplitMath(text, "=");
  return parts.size() == 2 && CodePoints(parts[0]) <= 2 ? parts[1] : text;
}

// answer.split("=")[-1].lstrip(" ")
std::string BehindEqual(const std::string& text) {
  return std::string(python::StripCharacters(text.substr(text.rfind('=') + 1), " ", true, false));
}

// The last match of r"\$(.*)\$": that of the last line with two dollar signs.
std::optional<std::string> LastInDollars(const std::string& text) {
  std::optional<std::string> last;
  for (const std::string& line : Split(text, '\n')) {
    const size_t first = line.find('$'), end = line.rfind('$');
    if (first != end) last = line.substr(first + 1, end - first - 1);
  }
  return last;
}

// The last match of r"(?:\$)?\d+(?:\.\d+)?(?![\w\d])".
std::optional<std::string> LastNumber(const std::string& text) {
  const std::u32string all = python::Decode(text);
  const auto digits_end = [&](size_t at) {
    while (at < all.size() && python::IsDecimal(all[at])) ++at;
    return at;
  };
  const auto ends = [&](size_t at) { return at == all.size() || !python::IsWord(all[at]); };
  std::optional<std::string> last;
  for (size_t at = 0; at < all.size();) {
    const size_t begin = at;
    if (all[at] == U'$') ++at;
    const size_t whole = digits_end(at);
    if (whole == at) {
      at = begin + 1;
      continue;
    }
    const size_t fraction =
        whole < all.size() && all[whole] == U'.' ? digits_end(whole + 1) : whole;
    const bool has_fraction = fraction > whole + 1;
    at = whole;
    if (has_fraction && ends(fraction)) at = fraction;
    if (ends(at)) last = python::Encode(std::u32string_view(all).substr(begin, at - begin));
  }
  return last;
}

// get_answer_without_dollar_sign.
std::optional<std::string> OutsideDollars(const std::string& text) {
  if (!HoldsMath(text, "=")) return LastNumber(text);
  const std::string behind(python::StripCharacters(BehindEqual(text), ".", false, true));
  return behind.substr(0, behind.find("\\n"));  // a backslash and the letter
}

}  // namespace

std::optional<std::string> LastBoxed(std::string_view text, BoxForms forms) {
  if (forms == BoxForms::kBracesAndSpace && HoldsMath(text, kBoxSpace)) {
    std::string_view rest = text.substr(text.rfind(kBoxSpace) + kBoxSpace.size());
    rest = rest.substr(0, rest.find('$'));
    return std::string(kBoxSpace) + std::string(rest);
  }
  size_t begin = text.rfind(kBox);
  if (begin == kNowhere) begin = text.rfind("\\fbox");
  if (begin == kNowhere) return std::nullopt;
  const size_t end = BehindBraces(text, begin);
  if (end == kNowhere) return std::nullopt;
  return std::string(text.substr(begin, end - begin));
}

std::optional<std::string> RemoveBoxed(std::string_view boxed, BoxForms forms) {
  if (forms == BoxForms::kBracesAndSpace && HoldsMath(boxed, kBoxSpace)) {
    if (!boxed.starts_with(kBoxSpace)) return std::nullopt;
    return std::string(boxed.substr(kBoxSpace.size()));
  }
  if (!boxed.starts_with(kBoxBrace) || !boxed.ends_with('}')) return std::nullopt;
  return std::string(boxed.substr(kBoxBrace.size(), boxed.size() - kBoxBrace.size() - 1));
}

std::string BetweenDollars(std::string_view text) {
  const size_t first = text.find('$'), last = text.rfind('$');
  return std::string(first == last ? text : text.substr(first + 1, last - first - 1));
}

std::optional<std::string> StripMath(std::string text, SlashRule rule) {
  static constexpr std::pair<std::string_view, std::string_view> kFirst[] = {
      {"\n", ""},     {"\\!", ""},     {"\\\\", "\\"},    {"tfrac", "frac"}, {"dfrac", "frac"},
      {"\\left", ""}, {"\\right", ""}, {"^{\\circ}", ""}, {"^\\circ", ""},   {"\\$", ""}};
  for (const auto& [from, to] : kFirst) text = python::Replace(text, from, to);
  std::optional<std::string> fixed = RemoveUnits(text);
  if (!fixed) return std::nullopt;
  text = python::Replace(*fixed, "\\%", "");
  text = python::Replace(python::Replace(text, " .", " 0."), "{.", "{0.");
  if (text.empty()) return text;
  if (text[0] == '.') text.insert(0, "0");
  fixed = FixRoots(WithoutName(text));
  if (!fixed) return std::nullopt;
  fixed = FixFractions(python::Replace(*fixed, " ", ""));
  if (!fixed) return std::nullopt;
  if (*fixed == "0.5") fixed = "\\frac{1}{2}";
  return FixSlash(*fixed, rule);
}

bool SameMath(const std::string& a, const std::string& b, SlashRule rule) {
  const std::optional<std::string> stripped_a = StripMath(a, rule);
  if (!stripped_a) return a == b;
  const std::optional<std::string> stripped_b = StripMath(b, rule);
  return stripped_b ? *stripped_a == *stripped_b : a == b;
}

std::optional<std::string> AgievalAnswer(const std::string& text) {
  if (HoldsMath(text, kBox)) {
    const auto boxed = LastBoxed(text, BoxForms::kBraces);
    if (!boxed) return std::nullopt;
    const auto content = RemoveBoxed(*boxed, BoxForms::kBraces);
    return content && HoldsMath(*content, "=") ? BehindEqual(*content) : content;
  }
  std::optional<std::string> answer = LastInDollars(text);
  if (answer && HoldsMath(*answer, "=")) answer = BehindEqual(*answer);
  if (answer && !answer->empty()) return answer;
  return OutsideDollars(text);
}

}  // namespace evald

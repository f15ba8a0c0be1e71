#include "tokenizer/expression.h"

#include <fmt/format.h>

#include <string_view>

#include "base/regex.h"
#include "tokenizer/properties.h"

namespace evald::tok {
namespace {

std::string Spelled(const std::vector<CodeRange>& ranges) {
  std::string text;
  for (const CodeRange& range : ranges) {
    text += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<uint32_t>(range.first),
                        static_cast<uint32_t>(range.last));
  }
  return text;
}

// The class that takes what `plain` (\p{L}, \d, ...) takes and what it lacks; a class nests in a
// class.
std::string Widened(const std::string& plain, bool negated, const Widening& widening) {
  const std::string whole = plain + Spelled(widening.more);
  if (widening.less.empty()) return fmt::format("[{}{}]", negated ? "^" : "", whole);
  const std::string rest = fmt::format("{}&&[^{}]", whole, Spelled(widening.less));
  return fmt::format("[{}{}]", negated ? "^" : "", rest);
}

// At the backslash of \p{...}, \P{...}, \d, \D, \w or \W: adds it widened and gives where it ends;
// else adds the escaped character as it is.
size_t AddEscape(std::string_view expression, size_t at, std::string* out) {
  const char kind = at + 1 < expression.size() ? expression[at + 1] : '\0';
  if (kind == 'd' || kind == 'D' || kind == 'w' || kind == 'W') {
    const bool negated = kind == 'D' || kind == 'W';
    const bool digit = kind == 'd' || kind == 'D';
    *out += Widened(digit ? "\\d" : "\\w", negated, WideningOf(digit ? "d" : "w"));
    return at + 2;
  }
  const size_t open = at + 2;
  const size_t close = expression.find('}', open);
  const bool property = (kind == 'p' || kind == 'P') && open < expression.size() &&
                        expression[open] == '{' && close != std::string_view::npos;
  if (!property) {
    *out += expression.substr(at, 2);
    return at + 2;
  }
  std::string_view name = expression.substr(open + 1, close - open - 1);
  const bool inner = name.starts_with('^');
  if (inner) name.remove_prefix(1);
  *out += Widened(fmt::format("\\p{{{}}}", name), (kind == 'P') != inner, WideningOf(name));
  return close + 1;
}

}  // namespace

std::string WidenProperties(const std::string& expression) {
  std::string out;
  for (size_t at = 0; at < expression.size();) {
    if (expression[at] == '\\') {
      at = AddEscape(expression, at, &out);
    } else {
      out += expression[at++];
    }
  }
  return out;
}

std::vector<CodeRange> PropertyRanges(const std::string& name) {
  std::vector<CodeRange> ranges;
  for (const auto& [first, last] : OnigurumaRanges(name)) ranges.push_back({first, last});
  const Widening widening = WideningOf(name);
  ranges.insert(ranges.end(), widening.more.begin(), widening.more.end());
  return ranges;
}

}  // namespace evald::tok

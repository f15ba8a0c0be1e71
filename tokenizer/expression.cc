#include "tokenizer/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/regex.h"
#include "evald/error.h"
#include "tokenizer/properties.h"
#include "tokenizer/unicode.h"

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

// The class of the characters that `plain` (\p{L}, \d, ...) matches and of those that it lacks. A
// class may stand inside a class.
std::string Widened(const std::string& plain, bool negated, const Widening& widening) {
  const std::string whole = plain + Spelled(widening.more);
  if (widening.less.empty()) return fmt::format("[{}{}]", negated ? "^" : "", whole);
  const std::string rest = fmt::format("{}&&[^{}]", whole, Spelled(widening.less));
  return fmt::format("[{}{}]", negated ? "^" : "", rest);
}

// A letter and its other case, of which at least one is new in Unicode 15 or 16. Oniguruma 6.9.8
// does not know them as a pair. Source: CaseFolding.txt of Unicode 16.
struct CasePair {
  char32_t upper;
  char32_t lower;
  char32_t count;  // number of consecutive pairs
};
constexpr CasePair kLaterPairs[] = {{0x1C89, 0x1C8A, 1}, {0xA7CB, 0x264, 1},
                                    {0xA7CC, 0xA7CD, 1}, {0xA7DA, 0xA7DB, 1},
                                    {0xA7DC, 0x19B, 1},  {0x10D50, 0x10D70, 22}};

// The other case of such a letter; 0 for any other character.
char32_t OtherCase(char32_t code) {
  for (const CasePair& pair : kLaterPairs) {
    if (code >= pair.upper && code < pair.upper + pair.count) return code - pair.upper + pair.lower;
    if (code >= pair.lower && code < pair.lower + pair.count) return code - pair.lower + pair.upper;
  }
  return 0;
}

// The other cases of letters in the class, as far as the class lacks them.
std::vector<CodeRange> MissingCases(const std::string& one_class) {
  const Regex regex(one_class, RegexOptions{});
  const auto takes = [&](char32_t code) {
    std::string text;
    AppendUtf8(&text, code);
    Regex::Match match;
    return regex.Search(text, 0, &match);
  };
  std::vector<CodeRange> missing;
  for (const CasePair& pair : kLaterPairs) {
    for (char32_t i = 0; i < pair.count; ++i) {
      const bool upper = takes(pair.upper + i);
      const bool lower = takes(pair.lower + i);
      if (upper == lower) continue;
      const char32_t other = upper ? pair.lower + i : pair.upper + i;
      missing.push_back({other, other});
    }
  }
  return missing;
}

// Rewrites an expression from left to right.
class Rewriter {
 public:
  explicit Rewriter(std::string_view expression) : text_(expression) {}

  std::string Run() {
    while (at_ < text_.size()) Step();
    return std::move(out_);
  }

 private:
  struct Flags {
    bool any_case = false;  // (?i)
    bool extended = false;  // (?x): white space and comments are left out
  };

  char At(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  // The end of the next `mark`.
  size_t Behind(char mark) const { return std::min(text_.find(mark, at_), text_.size() - 1) + 1; }
  void Copy(size_t end) {
    out_ += text_.substr(at_, end - at_);
    at_ = std::min(end, text_.size());
  }

  void Step() {
    switch (At(at_)) {
      case '\\':
        return BareEscape();
      case '[':
        return Class();
      case '(':
        return Group();
      case ')':
        if (!outer_.empty()) {
          flags_ = outer_.back();
          outer_.pop_back();
        }
        return Copy(at_ + 1);
      case '#':
        return Copy(flags_.extended ? Behind('\n') : at_ + 1);
      default:
        return Character();
    }
  }

  // A character that represents itself, with its other case.
  void Character() {
    size_t end = at_;
    const char32_t other = OtherCase(NextCodePoint(text_, &end));
    if (!flags_.any_case || other == 0) return Copy(end);
    const std::string_view character = text_.substr(at_, end - at_);
    out_ += fmt::format("[{}{}]", character, Spelled({{other, other}}));
    at_ = end;
  }

  // "(" and the text up to the first part of the group. (?i) holds to the end of the group.
  void Group() {
    if (At(at_ + 1) == '?' && At(at_ + 2) == '#') return Copy(Behind(')'));  // a comment
    size_t end = at_ + 1;
    Flags flags = flags_;
    bool is_flags = At(end) == '?';
    if (is_flags) {
      bool value = true;
      for (++end; is_flags && At(end) != ')' && At(end) != ':'; ++end) {
        const char flag = At(end);
        if (flag == '-') value = false;
        if (flag == 'i') flags.any_case = value;
        if (flag == 'x') flags.extended = value;
        is_flags = flag == '-' || std::isalpha(static_cast<unsigned char>(flag)) != 0;
      }
    }
    if (is_flags && At(end) == ')') {  // (?i): no new group
      flags_ = flags;
      return Copy(end + 1);
    }
    outer_.push_back(flags_);
    if (is_flags) flags_ = flags;
    Copy(is_flags ? end + 1 : at_ + 1);
  }

  // A class with all its parts. Under (?i) Oniguruma adds other cases to the outermost class.
  void Class() {
    const std::string before = std::move(out_);
    out_.clear();
    ++at_;
    const bool negated = At(at_) == '^';
    if (negated) ++at_;
    if (At(at_) == ']') Copy(at_ + 1);  // represents itself
    while (at_ < text_.size() && At(at_) != ']') ClassItem();
    const std::string members = std::move(out_);
    out_ = before;
    const bool closed = at_ < text_.size();
    const bool outermost = depth_ == 0;
    if (closed) ++at_;
    const std::string plain = fmt::format("[{}]", members);
    std::vector<CodeRange> missing;
    if (closed && outermost && flags_.any_case && !members.empty()) missing = MissingCases(plain);
    out_ += negated ? "[^" : "[";
    out_ += missing.empty() ? members : plain + Spelled(missing);
    if (closed) out_ += ']';
  }

  void ClassItem() {
    if (At(at_) == '\\') return Escape();
    if (At(at_) != '[') return Copy(at_ + 1);
    if (At(at_ + 1) == ':') RefusePosixBracket();
    constexpr int kDepthMax = 100;
    if (++depth_ > kDepthMax) {
      throw Error(ErrorKind::kInput,
                  fmt::format("classes are nested deeper than {} levels", kDepthMax));
    }
    Class();
    --depth_;
  }

  // Refuses [:alpha:] and the like: Oniguruma's versions differ in their characters.
  void RefusePosixBracket() const {
    const size_t end = text_.find(":]", at_ + 2);
    if (end == std::string_view::npos) return;
    std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
    if (name.starts_with('^')) name.remove_prefix(1);
    for (const char* same : {"space", "blank", "cntrl", "xdigit", "ascii"}) {
      if (name == same) return;
    }
    for (const char* known :
         {"alnum", "alpha", "digit", "graph", "lower", "print", "punct", "upper", "word"}) {
      if (name != known) continue;
      throw Error(ErrorKind::kInput,
                  fmt::format("the class [:{}:] is not understood, expected a property such as "
                              "\\p{{L}}",
                              name));
    }
  }

  // A backslash outside a class. Under (?i) a property gets no other cases there.
  void BareEscape() {
    const char kind = At(at_ + 1);
    if (kind == 'X' || kind == 'y' || kind == 'Y') {
      throw Error(
          ErrorKind::kInput,
          fmt::format("\\{} is not understood: it depends on the version of Unicode", kind));
    }
    if (kind == 'w' || kind == 'W') return BareWord(kind == 'W');
    if (!flags_.any_case) return Escape();
    if (kind == 'x' && At(at_ + 2) == '{') {
      const size_t close = std::min(text_.find('}', at_), text_.size());
      uint32_t code = 0;
      std::from_chars(text_.data() + at_ + 3, text_.data() + close, code, 16);
      const char32_t other = OtherCase(code);
      if (other == 0) return Copy(close + 1);
      out_ += fmt::format("[{}]", Spelled({{code, code}, {other, other}}));
      at_ = std::min(close + 1, text_.size());
      return;
    }
    constexpr std::string_view kProperties = "pPdD";
    const bool property = kProperties.find(kind) != std::string_view::npos;
    if (property) out_ += "(?-i:";
    Escape();
    if (property) out_ += ')';
  }

  // Outside a class, \w also matches the superscripts and fractions of Latin-1: Oniguruma uses
  // another table there.
  void BareWord(bool negated) {
    const std::string word = "\\w\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
    out_ += fmt::format("(?-i:{})", Widened(word, negated, WideningOf("w")));
    at_ += 2;
  }

  // A backslash. Adds \p{...}, \P{...}, \d, \D, \w or \W widened, else the escaped character.
  void Escape() {
    const char kind = At(at_ + 1);
    if (kind == 'd' || kind == 'D' || kind == 'w' || kind == 'W') {
      const bool negated = kind == 'D' || kind == 'W';
      const bool digit = kind == 'd' || kind == 'D';
      out_ += Widened(digit ? "\\d" : "\\w", negated, WideningOf(digit ? "d" : "w"));
      at_ += 2;
      return;
    }
    const size_t open = at_ + 2;
    const size_t close = text_.find('}', std::min(open, text_.size()));
    const bool property =
        (kind == 'p' || kind == 'P') && At(open) == '{' && close != std::string_view::npos;
    if (!property) {
      size_t end = at_ + 1;
      if (end < text_.size()) NextCodePoint(text_, &end);
      return Copy(end);
    }
    std::string_view name = text_.substr(open + 1, close - open - 1);
    const bool inner = name.starts_with('^');
    if (inner) name.remove_prefix(1);
    out_ += Widened(fmt::format("\\p{{{}}}", name), (kind == 'P') != inner, WideningOf(name));
    at_ = close + 1;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
  Flags flags_;
  std::vector<Flags> outer_;  // of the groups around the current place
  int depth_ = 0;             // of the class that is being written
};

}  // namespace

std::string WidenProperties(const std::string& expression) { return Rewriter(expression).Run(); }

std::vector<CodeRange> PropertyRanges(const std::string& name) {
  std::vector<CodeRange> ranges;
  for (const auto& [first, last] : OnigurumaRanges(name)) ranges.push_back({first, last});
  const Widening widening = WideningOf(name);
  ranges.insert(ranges.end(), widening.more.begin(), widening.more.end());
  return ranges;
}

}  // namespace evald::tok

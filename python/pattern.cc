#include "python/pattern.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr const char* kWordSet = "\\p{L}\\p{N}_";
constexpr const char* kAsciiWordSet = "a-zA-Z0-9_";
constexpr const char* kSpaceSet = "\\s\\x{1C}-\\x{1F}";
constexpr const char* kAsciiSpaceSet = "\\x{9}-\\x{D}\\x{20}";

struct Flags {
  bool ignore_case = false;
  bool dot_all = false;
  bool multiline = false;
  bool ascii = false;
};

struct Group {
  Flags outer;        // flags to restore at the closing parenthesis
  size_t item_begin;  // the group's begin in the output
};

class Translator {
 public:
  Translator(const std::string& pattern, Flags flags) : in_(pattern), flags_(flags) {}

  PythonPattern Run() {
    LeadingFlags();
    PythonPattern result;
    result.dot_all = flags_.dot_all;
    result.ignore_case = flags_.ignore_case;
    global_dot_all_ = flags_.dot_all;
    while (at_ < in_.size()) Item();
    if (!groups_.empty()) Fail("missing ), unterminated subpattern");
    result.pattern = std::move(out_);
    return result;
  }

 private:
  [[noreturn]] void Fail(const std::string& why) const {
    throw Error(ErrorKind::kInput,
                fmt::format("regular expression '{}': {} at position {}", in_, why,
                            CodePoints(std::string_view(in_).substr(0, at_))));
  }

  bool Looking(std::string_view text) const { return in_.compare(at_, text.size(), text) == 0; }
  bool Take(std::string_view text) {
    if (!Looking(text)) return false;
    at_ += text.size();
    return true;
  }
  char Peek() const { return at_ < in_.size() ? in_[at_] : '\0'; }

  uint32_t TakeCodePoint() {
    if (at_ >= in_.size()) Fail("unexpected end of pattern");
    const auto lead = static_cast<unsigned char>(in_[at_++]);
    if (lead < 0x80) return lead;
    uint32_t c = lead >= 0xF0 ? lead & 0x07U : lead >= 0xE0 ? lead & 0x0FU : lead & 0x1FU;
    while (at_ < in_.size() && (static_cast<unsigned char>(in_[at_]) & 0xC0) == 0x80) {
      c = c << 6 | (static_cast<unsigned char>(in_[at_++]) & 0x3FU);
    }
    return c;
  }

  static std::string Literal(uint32_t c) { return fmt::format("\\x{{{:X}}}", c); }
  void Emit(std::string_view text) {
    item_begin_ = out_.size();
    out_.append(text);
    repeatable_ = true;
  }
  // Letters and digits stay as they are, so that Oniguruma's messages stay readable.
  void EmitCodePoint(uint32_t c) {
    const bool plain = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                       (c >= 'a' && c <= 'z') || c == '_';
    if (plain && c < 0x80) {
      Emit(std::string(1, static_cast<char>(c)));
    } else {
      Emit(Literal(c));
    }
  }

  std::string WordSet() const { return flags_.ascii ? kAsciiWordSet : kWordSet; }
  std::string SpaceSet() const { return flags_.ascii ? kAsciiSpaceSet : kSpaceSet; }
  std::string DigitSet() const { return flags_.ascii ? "0-9" : "\\p{Nd}"; }

  // A class that ignoring case must not widen: U+0345 is no letter, but its upper case is.
  std::string WithoutCase(const std::string& set) const {
    return flags_.ignore_case ? "(?-i:" + set + ")" : set;
  }

  // The members of \w, \d, \s, or the whole class of \W, \D, \S; "" for any other letter.
  std::string ClassEscape(char letter) const {
    switch (letter) {
      case 'w':
        return WordSet();
      case 'd':
        return DigitSet();
      case 's':
        return SpaceSet();
      case 'W':
        return "[^" + WordSet() + "]";
      case 'D':
        return "[^" + DigitSet() + "]";
      case 'S':
        return "[^" + SpaceSet() + "]";
      default:
        return "";
    }
  }

  uint32_t Hex(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = Peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) Fail("incomplete escape");
      value = value << 4 | static_cast<uint32_t>(digit);
      ++at_;
    }
    if (value > 0x10FFFF) Fail("bad escape, beyond U+10FFFF");
    return value;
  }

  static bool IsOctal(char c) { return c >= '0' && c <= '7'; }
  uint32_t Octal(int digits_max) {
    uint32_t value = 0;
    for (int i = 0; i < digits_max && IsOctal(Peek()); ++i) {
      value = value * 8 + static_cast<uint32_t>(in_[at_++] - '0');
    }
    if (value > 0377) Fail("octal escape value outside of range 0-0o377");
    return value;
  }

  // An escape that stands for one character, in a class and outside. `letter` was taken already.
  uint32_t CharacterEscape(char letter) {
    switch (letter) {
      case 'a':
        return 7;
      case 'f':
        return 12;
      case 'n':
        return 10;
      case 'r':
        return 13;
      case 't':
        return 9;
      case 'v':
        return 11;
      case 'x':
        return Hex(2);
      case 'u':
        return Hex(4);
      case 'U':
        return Hex(8);
      default:
        break;
    }
    if (letter == 'N') Fail("\\N{...} is not served");
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
      Fail(fmt::format("bad escape \\{}", letter));
    }
    --at_;  // not a letter: the character itself, perhaps of several bytes
    return TakeCodePoint();
  }

  void BackReference(int number) {
    if (number > groups_opened_) Fail(fmt::format("invalid group reference {}", number));
    Emit(fmt::format("\\k<{}>", number));
  }

  void NumericEscape() {
    if (Peek() == '0') {
      EmitCodePoint(Octal(3));
      return;
    }
    const std::string_view rest = std::string_view(in_).substr(at_);
    if (rest.size() >= 3 && IsOctal(rest[0]) && IsOctal(rest[1]) && IsOctal(rest[2])) {
      EmitCodePoint(Octal(3));
      return;
    }
    int number = in_[at_++] - '0';
    if (Peek() >= '0' && Peek() <= '9') number = number * 10 + (in_[at_++] - '0');
    BackReference(number);
  }

  void Escape() {
    const char letter = Peek();
    if (at_ >= in_.size()) Fail("bad escape (end of pattern)");
    if (letter >= '0' && letter <= '9') return NumericEscape();
    ++at_;
    const std::string set = ClassEscape(letter);
    const std::string word = WithoutCase("[" + WordSet() + "]");
    if (letter == 'w' || letter == 'W') {
      Emit(letter == 'w' ? word : WithoutCase(set));
    } else if (!set.empty()) {
      Emit(letter >= 'a' ? "[" + set + "]" : set);
    } else if (letter == 'A') {
      Emit("\\A");
    } else if (letter == 'Z') {
      Emit("\\z");
    } else if (letter == 'b') {
      Emit(fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word));
    } else if (letter == 'B') {
      Emit(fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0})(?!\\A\\z))", word));
    } else {
      EmitCodePoint(CharacterEscape(letter));
    }
  }

  // One member of a class: a code point with "" in `set`, or a set.
  uint32_t ClassMember(std::string* set) {
    if (!Take("\\")) return TakeCodePoint();
    if (at_ >= in_.size()) Fail("unterminated character set");
    const char letter = Peek();
    if (IsOctal(letter)) return Octal(3);
    if (letter == '8' || letter == '9') Fail(fmt::format("bad escape \\{}", letter));
    ++at_;
    *set = ClassEscape(letter);
    if (!set->empty()) return 0;
    return letter == 'b' ? 8 : CharacterEscape(letter);
  }

  void Class() {
    std::string members = Take("^") ? "[^" : "[";
    for (bool first = true; first || Peek() != ']'; first = false) {
      if (at_ >= in_.size()) Fail("unterminated character set");
      std::string set;
      const uint32_t low = ClassMember(&set);
      const bool range = Peek() == '-' && at_ + 1 < in_.size() && in_[at_ + 1] != ']';
      if (!range) {
        members += set.empty() ? Literal(low) : set;
        continue;
      }
      ++at_;
      std::string high_set;
      const uint32_t high = ClassMember(&high_set);
      if (!set.empty() || !high_set.empty() || high < low) Fail("bad character range");
      members += Literal(low) + "-" + Literal(high);
    }
    ++at_;
    Emit(members + "]");
  }

  // Reads a quantifier in braces, after the '{'. False if it is none, and the brace stands for
  // itself.
  bool Interval(std::string* quantifier, bool* fixed) {
    const size_t close = in_.find('}', at_);
    if (close == std::string::npos || close == at_) return false;
    const std::string body = in_.substr(at_, close - at_);
    const size_t comma = body.find(',');
    const std::string low = body.substr(0, comma);
    const std::string high = comma == std::string::npos ? low : body.substr(comma + 1);
    if ((low + high).find_first_not_of("0123456789") != std::string::npos) return false;
    *fixed = comma == std::string::npos;
    *quantifier = *fixed ? "{" + low + "}" : "{" + (low.empty() ? "0" : low) + "," + high + "}";
    at_ = close + 1;
    return true;
  }

  void Quantifier(const std::string& quantifier, bool interval, bool fixed) {
    if (!repeatable_) Fail(quantified_ ? "multiple repeat" : "nothing to repeat");
    if (Take("?")) {
      out_ += fixed ? quantifier : quantifier + "?";  // {n}? would mean "or nothing" to Oniguruma
    } else if (Take("+")) {
      if (interval) {
        out_.insert(item_begin_, "(?>");
        out_ += quantifier + ")";
      } else {
        out_ += quantifier + "+";
      }
    } else {
      out_ += quantifier;
    }
    repeatable_ = false;
    quantified_ = true;
  }

  // Letters of inline flags up to ':', '-' or ')'.
  void ReadFlags(Flags* flags, bool value) {
    while (at_ < in_.size() && Peek() != ':' && Peek() != '-' && Peek() != ')') {
      const char letter = in_[at_++];
      switch (letter) {
        case 'i':
          flags->ignore_case = value;
          break;
        case 's':
          flags->dot_all = value;
          break;
        case 'm':
          flags->multiline = value;
          break;
        case 'a':
          flags->ascii = true;
          break;
        case 'u':
          flags->ascii = false;
          break;
        case 'x':
        case 'L':
          Fail(fmt::format("the flag (?{}) is not served", letter));
        default:
          Fail("unknown flag");
      }
    }
  }

  void LeadingFlags() {
    while (Looking("(?") && at_ + 2 < in_.size() &&
           std::isalpha(static_cast<unsigned char>(in_[at_ + 2]))) {
      const size_t close = in_.find_first_of(":-)", at_ + 2);
      if (close == std::string::npos || in_[close] != ')' || in_[at_ + 2] == 'P') return;
      at_ += 2;
      ReadFlags(&flags_, true);
      ++at_;
    }
  }

  void Open(std::string_view text) {
    groups_.push_back({flags_, out_.size()});
    out_.append(text);
    repeatable_ = false;
    quantified_ = false;
  }

  std::string Name(char close) {
    const size_t end = in_.find(close, at_);
    if (end == std::string::npos || end == at_) Fail("missing group name");
    std::string name = in_.substr(at_, end - at_);
    at_ = end + 1;
    return name;
  }

  int GroupNumber(const std::string& name) {
    if (name.find_first_not_of("0123456789") == std::string::npos && name.size() < 4) {
      return std::stoi(name);
    }
    const auto found = names_.find(name);
    if (found == names_.end()) Fail(fmt::format("unknown group name '{}'", name));
    return found->second;
  }

  void ScopedFlags() {
    Flags inner = flags_;
    ReadFlags(&inner, true);
    if (Take("-")) ReadFlags(&inner, false);
    if (Peek() == ')') Fail("global flags not at the start of the expression");
    if (!Take(":")) Fail("missing -, : or )");
    std::string open = "(?:";
    if (inner.ignore_case != flags_.ignore_case) open = inner.ignore_case ? "(?i:" : "(?-i:";
    Open(open);
    flags_ = inner;
  }

  void OpenGroup() {
    if (!Take("?")) {
      ++groups_opened_;
      return Open("(");
    }
    if (Take("P<")) {
      const std::string name = Name('>');
      if (!names_.emplace(name, ++groups_opened_).second) {
        Fail(fmt::format("redefinition of group name '{}'", name));
      }
      return Open("(");
    }
    if (Take("P=")) return BackReference(GroupNumber(Name(')')));
    if (Take("#")) {
      const size_t close = in_.find(')', at_);
      if (close == std::string::npos) Fail("missing ), unterminated comment");
      at_ = close + 1;
      return;
    }
    if (Take("(")) {
      const int number = GroupNumber(Name(')'));
      if (number < 1) Fail("bad group number");
      return Open(fmt::format("(?(<{}>)", number));
    }
    for (const char* plain : {":", "=", "!", "<=", "<!", ">"}) {
      if (Take(plain)) return Open(std::string("(?") + plain);
    }
    if (std::isalpha(static_cast<unsigned char>(Peek())) || Peek() == '-') return ScopedFlags();
    Fail("unknown extension");
  }

  void CloseGroup() {
    if (groups_.empty()) Fail("unbalanced parenthesis");
    out_ += ')';
    flags_ = groups_.back().outer;
    item_begin_ = groups_.back().item_begin;
    groups_.pop_back();
    repeatable_ = true;
    quantified_ = false;
  }

  void Item() {
    const char c = Peek();
    if (c == '*' || c == '+' || c == '?') {
      ++at_;
      return Quantifier(std::string(1, c), false, false);
    }
    if (c == '{') {
      ++at_;
      std::string quantifier;
      bool fixed = false;
      if (Interval(&quantifier, &fixed)) return Quantifier(quantifier, true, fixed);
      quantified_ = false;
      return EmitCodePoint('{');
    }
    quantified_ = false;
    switch (c) {
      case '\\':
        ++at_;
        return Escape();
      case '[':
        ++at_;
        return Class();
      case '(':
        ++at_;
        return OpenGroup();
      case ')':
        ++at_;
        return CloseGroup();
      case '|':
        ++at_;
        out_ += '|';
        repeatable_ = false;
        return;
      case '^':
        ++at_;
        Emit(flags_.multiline ? "(?:\\A|(?<=\\n))" : "\\A");
        repeatable_ = false;
        return;
      case '$':
        ++at_;
        Emit(flags_.multiline ? "(?=\\n|\\z)" : "\\Z");
        repeatable_ = false;
        return;
      case '.':
        ++at_;
        return Emit(flags_.dot_all == global_dot_all_ ? "." : flags_.dot_all ? "\\O" : "\\N");
      default:
        return EmitCodePoint(TakeCodePoint());
    }
  }

  const std::string& in_;
  Flags flags_;
  bool global_dot_all_ = false;
  size_t at_ = 0;
  std::string out_;
  size_t item_begin_ = 0;    // of the last item in out_
  bool repeatable_ = false;  // the last item may take a quantifier
  bool quantified_ = false;  // the last item has one
  int groups_opened_ = 0;
  std::vector<Group> groups_;
  std::map<std::string, int> names_;
};

}  // namespace

PythonPattern TranslatePythonPattern(const std::string& pattern, bool ignore_case, bool dot_all,
                                     bool multiline) {
  if (!IsUtf8(pattern)) {
    throw Error(ErrorKind::kInput, "a regular expression is not valid UTF-8");
  }
  Flags flags;
  flags.ignore_case = ignore_case;
  flags.dot_all = dot_all;
  flags.multiline = multiline;
  return Translator(pattern, flags).Run();
}

}  // namespace evald

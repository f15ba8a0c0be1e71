#include "jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "evald/error.h"
#include "python/str.h"
#include "python/unicode.h"
#include "python/value.h"

namespace evald::jinja {
namespace {

constexpr size_t kSourceBytesMax = 4u << 20;

bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string source, const TemplateOptions& options)
      : source_(std::move(source)), options_(options) {}

  std::vector<Token> Run() {
    while (pos_ < source_.size()) LexRoot();
    Emit(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw Error(ErrorKind::kInput, fmt::format("line {}: {}", line_, message));
  }

  void Emit(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void Advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    pos_ = to;
  }

  bool At(size_t pos, std::string_view what) const {
    return source_.compare(pos, what.size(), what) == 0;
  }

  // The position after the white space (as Python defines it) at `pos`.
  size_t SkipSpace(size_t pos) const {
    while (pos < source_.size()) {
      const auto byte = static_cast<unsigned char>(source_[pos]);
      const size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      if (!python::IsSpace(python::Decode(std::string_view(source_).substr(pos, length))[0])) break;
      pos += length;
    }
    return pos;
  }

  // The data before a tag that opens with `sign`. `strips`: lstrip_blocks applies.
  std::string_view StripBeforeTag(std::string_view text, char sign, bool strips) const {
    if (sign == '-') return python::StripRight(text);
    if (sign == '+' || !options_.lstrip_blocks || !strips) return text;
    const size_t newline = text.rfind('\n');
    const size_t from = newline == std::string_view::npos ? 0 : newline + 1;
    if (from == 0 && !line_starting_) return text;
    if (python::StripRight(text.substr(from)).empty()) return text.substr(0, from);
    return text;
  }

  // The position after a tag whose closing bracket ends at `pos`.
  size_t AfterTag(size_t pos, char sign, bool trims) const {
    if (sign == '-') return SkipSpace(pos);
    if (sign != '+' && trims && options_.trim_blocks && pos < source_.size() &&
        source_[pos] == '\n') {
      return pos + 1;
    }
    return pos;
  }

  char SignAt(size_t pos) const {
    return pos < source_.size() && (source_[pos] == '-' || source_[pos] == '+') ? source_[pos]
                                                                                : '\0';
  }

  void EndTag(size_t to) {
    Advance(to);
    line_starting_ = to > 0 && source_[to - 1] == '\n';
  }

  void EmitData(size_t end, std::string_view text) {
    if (!text.empty()) Emit(TokenKind::kData, std::string(text));
    Advance(end);
  }

  void LexRoot() {
    size_t tag = pos_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos) {
        EmitData(source_.size(), std::string_view(source_).substr(pos_));
        return;
      }
      if (tag + 1 < source_.size() &&
          (source_[tag + 1] == '%' || source_[tag + 1] == '{' || source_[tag + 1] == '#')) {
        break;
      }
      ++tag;
    }
    const char type = source_[tag + 1];
    const char sign = SignAt(tag + 2);
    const std::string_view before = std::string_view(source_).substr(pos_, tag - pos_);
    EmitData(tag, StripBeforeTag(before, sign, type != '{'));
    const size_t inside = tag + 2 + (sign != '\0' ? 1 : 0);
    if (type == '#') {
      LexComment(inside);
    } else if (type == '%') {
      const size_t raw = RawBegin(inside);
      if (raw != std::string::npos) {
        LexRaw(raw);
      } else {
        LexTag(inside, TokenKind::kBlockBegin, TokenKind::kBlockEnd, '%');
      }
    } else {
      LexTag(inside, TokenKind::kVariableBegin, TokenKind::kVariableEnd, '}');
    }
  }

  void LexComment(size_t inside) {
    const size_t end = source_.find("#}", inside);
    if (end == std::string::npos) Fail("a comment is not closed with #}");
    const char sign = end > inside ? SignAt(end - 1) : '\0';
    EndTag(AfterTag(end + 2, sign, true));
  }

  // The position after "raw %}", or npos if the block at `inside` is another one.
  size_t RawBegin(size_t inside) const {
    size_t pos = SkipSpace(inside);
    if (!At(pos, "raw")) return std::string::npos;
    pos = SkipSpace(pos + 3);
    if (At(pos, "-%}")) return SkipSpace(pos + 3);
    if (At(pos, "%}")) return pos + 2;
    return std::string::npos;
  }

  void LexRaw(size_t begin) {
    Advance(begin);
    line_starting_ = source_[begin - 1] == '\n';
    for (size_t tag = source_.find("{%", begin); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      const char sign = SignAt(tag + 2);
      size_t pos = SkipSpace(tag + 2 + (sign != '\0' ? 1 : 0));
      if (!At(pos, "endraw")) continue;
      pos = SkipSpace(pos + 6);
      const char close = SignAt(pos);
      if (close != '\0') ++pos;
      if (!At(pos, "%}")) continue;
      EmitData(tag,
               StripBeforeTag(std::string_view(source_).substr(begin, tag - begin), sign, true));
      EndTag(AfterTag(pos + 2, close, true));
      return;
    }
    Fail("a raw block is not closed with {% endraw %}");
  }

  // Tokens of an expression or statement until its closing bracket.
  void LexTag(size_t inside, TokenKind begin, TokenKind end, char close) {
    Emit(begin, "");
    Advance(inside);
    brackets_.clear();
    while (true) {
      if (pos_ >= source_.size()) Fail("a tag is not closed");
      if (brackets_.empty() && LexTagEnd(end, close)) return;
      const size_t space = SkipSpace(pos_);
      if (space != pos_) {
        Advance(space);
        continue;
      }
      if (!LexNumber() && !LexName() && !LexString()) LexOperator();
    }
  }

  bool LexTagEnd(TokenKind end, char close) {
    const char bracket[] = {close, '}', '\0'};
    const char sign = SignAt(pos_);
    const bool variable = end == TokenKind::kVariableEnd;
    const size_t at = pos_ + (sign == '-' || (sign == '+' && !variable) ? 1 : 0);
    if (!At(at, bracket)) return false;
    Emit(end, "");
    EndTag(AfterTag(at + 2, at > pos_ ? sign : '\0', !variable));
    return true;
  }

  // Digits with single underscores between them, from `pos`. Returns their end, or `pos` if there
  // are none.
  size_t Digits(size_t pos) const {
    size_t end = pos;
    while (end < source_.size()) {
      if (IsAsciiDigit(source_[end])) {
        ++end;
      } else if (source_[end] == '_' && end > pos && end + 1 < source_.size() &&
                 IsAsciiDigit(source_[end + 1])) {
        end += 2;
      } else {
        break;
      }
    }
    return end;
  }

  size_t FloatEnd(size_t pos) const {
    if (pos > 0 && source_[pos - 1] == '.') return pos;
    size_t end = Digits(pos);
    bool is_float = false;
    if (end < source_.size() && source_[end] == '.' && Digits(end + 1) > end + 1) {
      end = Digits(end + 1);
      is_float = true;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t digits = end + 1 + (SignAt(end + 1) != '\0' ? 1 : 0);
      if (Digits(digits) > digits) {
        end = Digits(digits);
        is_float = true;
      }
    }
    return is_float ? end : pos;
  }

  size_t IntegerEnd(size_t pos) const {
    if (source_[pos] == '0' && pos + 2 < source_.size()) {
      const char base = static_cast<char>(source_[pos + 1] | 0x20);
      const std::string_view digits = base == 'x'   ? "0123456789abcdefABCDEF_"
                                      : base == 'o' ? "01234567_"
                                      : base == 'b' ? "01_"
                                                    : "";
      const size_t end = std::min(source_.find_first_not_of(digits, pos + 2), source_.size());
      if (!digits.empty() && end > pos + 2 && source_[end - 1] != '_') return end;
    }
    size_t end = Digits(pos);
    if (source_[pos] == '0') end = std::min(source_.find_first_not_of("0", pos), end);
    return end;
  }

  bool LexNumber() {
    if (!IsAsciiDigit(source_[pos_])) return false;
    const size_t as_float = FloatEnd(pos_);
    const size_t end = as_float != pos_ ? as_float : IntegerEnd(pos_);
    std::string digits = source_.substr(pos_, end - pos_);
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    Emit(as_float != pos_ ? TokenKind::kFloat : TokenKind::kInteger, digits);
    Advance(end);
    return true;
  }

  bool LexName() {
    size_t end = pos_;
    while (end < source_.size()) {
      const auto byte = static_cast<unsigned char>(source_[end]);
      const size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      if (!python::IsWord(python::Decode(std::string_view(source_).substr(end, length))[0])) break;
      end += length;
    }
    if (end == pos_) return false;
    Emit(TokenKind::kName, source_.substr(pos_, end - pos_));
    Advance(end);
    return true;
  }

  bool LexString() {
    const char quote = source_[pos_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) Fail("a string is not closed");
    try {
      Emit(TokenKind::kString,
           PythonUnescape(std::string_view(source_).substr(pos_ + 1, end - pos_ - 1)));
    } catch (Error& error) {
      error.AddContext(fmt::format("line {}", line_));
      throw;
    }
    Advance(end + 1);
    return true;
  }

  void LexOperator() {
    static constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (std::string_view op : kOperators) {
      if (!At(pos_, op)) continue;
      if (op == "(" || op == "[" || op == "{") {
        brackets_.push_back(op == "(" ? ')' : op == "[" ? ']' : '}');
      } else if (op == ")" || op == "]" || op == "}") {
        if (brackets_.empty()) Fail(fmt::format("unexpected '{}'", op));
        if (brackets_.back() != op[0]) {
          Fail(fmt::format("unexpected '{}', expected '{}'", op, brackets_.back()));
        }
        brackets_.pop_back();
      }
      Emit(TokenKind::kOperator, std::string(op));
      Advance(pos_ + op.size());
      return;
    }
    Fail(fmt::format("unexpected character '{}'", source_[pos_]));
  }

  std::string source_;
  const TemplateOptions& options_;
  std::vector<Token> tokens_;
  std::string brackets_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
};

// All line ends become "\n". Without keep_trailing_newline, one line end at the end of the text is
// removed.
std::string NormalizeNewlines(const std::string& source, bool keep_trailing) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!keep_trailing && !out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

std::vector<Token> Tokenize(const std::string& source, const TemplateOptions& options) {
  if (source.size() > kSourceBytesMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("line 1: the template has {}, at most {} are read",
                            HumanBytes(source.size()), HumanBytes(kSourceBytesMax)));
  }
  if (!IsUtf8(source)) throw Error(ErrorKind::kInput, "line 1: the template is not valid UTF-8");
  return Lexer(NormalizeNewlines(source, options.keep_trailing_newline), options).Run();
}

}  // namespace evald::jinja

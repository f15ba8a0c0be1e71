#include "jinja/python_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "jinja/number.h"
#include "jinja/unicode.h"
#include "jinja/value.h"

namespace evald::jinja {
namespace {

constexpr int kDepthMaxLiteral = 100;

[[noreturn]] void Fail(const std::string& message) { throw Error(ErrorKind::kInput, message); }

// The value of `count` hexadecimal (or octal) digits of `body` from `at`.
char32_t ReadCode(std::string_view body, size_t at, size_t count, const char* what) {
  if (at + count > body.size()) Fail(fmt::format("a string escape {} is cut short", what));
  const auto code = ParseInt("0x" + std::string(body.substr(at, count)), 16);
  if (!code || body.substr(at, count).find_first_of("xX_+- ") != std::string_view::npos) {
    Fail(fmt::format("a string escape {} is not hexadecimal", what));
  }
  if (*code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000)) {
    Fail(fmt::format("a string escape {} is no character", what));
  }
  return static_cast<char32_t>(*code);
}

// Appends the character of the escape at body[at] (behind the backslash); returns the position
// behind it.
size_t AppendEscape(std::string_view body, size_t at, std::string* out) {
  const char c = body[at];
  const std::string_view plain = "\\'\"abfnrtv";
  const std::string_view meant = "\\'\"\a\b\f\n\r\t\v";
  if (const size_t found = plain.find(c); found != std::string_view::npos) {
    *out += meant[found];
    return at + 1;
  }
  if (c == '\n') return at + 1;
  if (c >= '0' && c <= '7') {
    char32_t code = 0;
    size_t end = at;
    while (end < body.size() && end < at + 3 && body[end] >= '0' && body[end] <= '7') {
      code = code * 8 + static_cast<char32_t>(body[end++] - '0');
    }
    AppendUtf8(code, out);
    return end;
  }
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits != 0) {
    AppendUtf8(ReadCode(body, at + 1, digits, c == 'x' ? "\\x" : "\\u"), out);
    return at + 1 + digits;
  }
  if (c == 'N') Fail("the string escape \\N{...} is not supported");
  *out += '\\';
  *out += c;
  return at + 1;
}

// ast.literal_eval.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  Json Run() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    Json value = ReadList('\0', true);
    if (at_ != text_.size()) Reject();
    return value;
  }

 private:
  [[noreturn]] void Reject() const {
    const std::string_view shown = text_.substr(0, 80);
    Fail(fmt::format("'{}{}' is not a Python literal (found at byte {})", shown,
                     text_.size() > shown.size() ? "..." : "", at_));
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void SkipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool newline = c == '\n' || c == '\r';
      if (c == '#' && depth_ > 0) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\f' || (newline && depth_ > 0)) {
        ++at_;
      } else if (newline && text_.find_first_not_of(" \t\r\n\f", at_) == std::string_view::npos) {
        at_ = text_.size();
      } else {
        return;
      }
    }
  }

  // Values with commas between them up to `close`; at the top a single one stands for itself.
  Json ReadList(char close, bool tuple) {
    Json items = Json::array();
    bool comma = false;
    SkipSpace();
    while (Peek() != close || (close == '\0' && at_ < text_.size())) {
      if (!items.empty() && !comma) Reject();
      items.push_back(ReadValue());
      SkipSpace();
      comma = Peek() == ',';
      if (comma) {
        ++at_;
        SkipSpace();
      }
      if (close == '\0' && at_ == text_.size()) break;
    }
    if (close != '\0') ++at_;
    if (tuple && items.size() == 1 && !comma) return items[0];
    if (close == '\0' && items.empty()) Reject();
    return items;
  }

  Json ReadDict() {
    Json dict = Json::object();
    SkipSpace();
    while (Peek() != '}') {
      const Json key = ReadValue();
      SkipSpace();
      if (Peek() != ':') Reject();
      ++at_;
      if (!key.is_string()) Fail("a dict in a template's result has a key that is not a string");
      SkipSpace();
      dict[key.get<std::string>()] = ReadValue();
      SkipSpace();
      if (Peek() == ',') {
        ++at_;
        SkipSpace();
      } else if (Peek() != '}') {
        Reject();
      }
    }
    ++at_;
    return dict;
  }

  Json ReadValue() {
    SkipSpace();
    const char c = Peek();
    if (c == '[' || c == '(' || c == '{') {
      if (++depth_ > kDepthMaxLiteral) Fail("a literal is nested too deep");
      ++at_;
      Json value = c == '{' ? ReadDict() : ReadList(c == '[' ? ']' : ')', c == '(');
      --depth_;
      return value;
    }
    if (IsQuoteAt(at_)) return ReadStrings();
    if (c == '-' || c == '+') {
      ++at_;
      if (++depth_ > kDepthMaxLiteral) Fail("a literal is nested too deep");
      Json value = ReadValue();
      --depth_;
      if (!value.is_number()) Reject();
      if (c == '+') return value;
      return value.is_number_float() ? Json(-value.get<double>()) : Json(-value.get<int64_t>());
    }
    if ((c >= '0' && c <= '9') || c == '.') return ReadNumber();
    for (const auto& [name, value] :
         {std::pair<std::string_view, Json>{"None", nullptr}, {"True", true}, {"False", false}}) {
      if (text_.substr(at_, name.size()) == name && !IsNameByte(at_ + name.size())) {
        at_ += name.size();
        return value;
      }
    }
    Reject();
  }

  bool IsNameByte(size_t at) const {
    if (at >= text_.size()) return false;
    const auto c = static_cast<unsigned char>(text_[at]);
    return std::isalnum(c) != 0 || c == '_' || c >= 0x80;
  }

  bool IsQuoteAt(size_t at) const {
    while (at < text_.size() && at < at_ + 2 &&
           std::string_view("rRuU").find(text_[at]) != std::string_view::npos)
      ++at;
    return at < text_.size() && (text_[at] == '\'' || text_[at] == '"');
  }

  Json ReadStrings() {
    std::string out;
    while (IsQuoteAt(at_)) {
      ReadString(&out);
      SkipSpace();
    }
    return out;
  }

  void ReadString(std::string* out) {
    bool raw = false;
    while (Peek() != '\'' && Peek() != '"') {
      raw = raw || Peek() == 'r' || Peek() == 'R';
      ++at_;
    }
    const char quote = Peek();
    const std::string triple(3, quote);
    const bool is_triple = text_.substr(at_, 3) == triple;
    at_ += is_triple ? 3 : 1;
    const size_t begin = at_;
    while (true) {
      if (at_ >= text_.size()) Reject();
      if (!is_triple && text_[at_] == '\n') Reject();
      if (text_[at_] == '\\') {
        at_ += 2;
      } else if (is_triple ? text_.substr(at_, 3) == triple : text_[at_] == quote) {
        break;
      } else {
        ++at_;
      }
    }
    const std::string_view body = text_.substr(begin, at_ - begin);
    *out += raw ? std::string(body) : PythonUnescape(body);
    at_ += is_triple ? 3 : 1;
  }

  Json ReadNumber() {
    const size_t begin = at_;
    while (IsNameByte(at_) || Peek() == '.' ||
           ((Peek() == '+' || Peek() == '-') && at_ > begin &&
            (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') && text_[begin + 1] != 'x')) {
      ++at_;
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (const auto integer = ParseInt(digits, 0)) return *integer;
    const bool has_point = digits.find_first_of(".eE") != std::string_view::npos;
    const auto number = has_point ? ParseFloat(digits) : std::nullopt;
    if (!number) Reject();
    return *number;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string PythonUnescape(std::string_view body) {
  std::string out;
  for (size_t at = 0; at < body.size();) {
    if (body[at] == '\\' && at + 1 < body.size()) {
      at = AppendEscape(body, at + 1, &out);
    } else {
      out += body[at++];
    }
  }
  return out;
}

std::string PythonStr(const Json& value) {
  return value.is_string() ? value.get<std::string>() : Str(Value::FromJson(value));
}

std::string PythonRepr(const Json& value) { return Repr(Value::FromJson(value)); }

bool PythonEquals(const Json& a, const Json& b) {
  if (a.is_string() || b.is_string()) {
    return a.is_string() && b.is_string() &&
           a.get_ref<const std::string&>() == b.get_ref<const std::string&>();
  }
  if (a.is_array() && b.is_array()) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), PythonEquals);
  }
  if (a.is_object() && b.is_object()) {
    if (a.size() != b.size()) return false;
    for (const auto& item : a.items()) {
      const auto other = b.find(item.key());
      if (other == b.end() || !PythonEquals(item.value(), *other)) return false;
    }
    return true;
  }
  if (a.is_structured() || b.is_structured()) return false;
  return Equals(Value::FromJson(a), Value::FromJson(b));
}

bool PythonIsDigit(std::string_view text) {
  const std::u32string all = Decode(text);
  return !all.empty() && std::all_of(all.begin(), all.end(), IsDigit);
}

bool StartsWithSpace(std::string_view text) {
  return !text.empty() && IsSpace(Decode(text.substr(0, 4))[0]);
}

bool EndsWithSpace(std::string_view text) {
  if (text.empty()) return false;
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
  return IsSpace(Decode(text.substr(begin))[0]);
}

Json PythonLiteral(std::string_view text) { return LiteralReader(text).Run(); }

}  // namespace evald::jinja

#include "python/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "python/moment.h"
#include "python/number.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr int kDepthMaxLiteral = 100;
constexpr int kDepthMaxRepr = 120;

[[noreturn]] void Fail(const std::string& message) { throw Error(ErrorKind::kInput, message); }

// The value of `count` hexadecimal (or octal) digits of `body` from `at`.
char32_t ReadCode(std::string_view body, size_t at, size_t count, const char* what) {
  if (at + count > body.size()) Fail(fmt::format("a string escape {} is cut short", what));
  const auto code = python::ParseInt("0x" + std::string(body.substr(at, count)), 16);
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
    python::AppendUtf8(code, out);
    return end;
  }
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits != 0) {
    python::AppendUtf8(ReadCode(body, at + 1, digits, c == 'x' ? "\\x" : "\\u"), out);
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
    if (const auto integer = python::ParseInt(digits, 0)) return *integer;
    const bool has_point = digits.find_first_of(".eE") != std::string_view::npos;
    const auto number = has_point ? python::ParseFloat(digits) : std::nullopt;
    if (!number) Reject();
    return *number;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

// A bool or an int.
int64_t IntegerOf(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    Fail(fmt::format("the integer {} is beyond 64 bits", value.get<uint64_t>()));
  }
  return value.get<int64_t>();
}

void AppendRepr(const Json& value, int depth, std::string* out) {
  if (depth > kDepthMaxRepr) {
    Fail(fmt::format("a value of more than {} levels has no text here", kDepthMaxRepr));
  }
  if (value.is_boolean()) {
    *out += value.get<bool>() ? "True" : "False";
  } else if (value.is_number_float()) {
    *out += python::FloatRepr(value.get<double>());
  } else if (value.is_number()) {
    *out += std::to_string(IntegerOf(value));
  } else if (value.is_string()) {
    *out += PythonQuoted(value.get_ref<const std::string&>());
  } else if (value.is_array()) {
    *out += '[';
    for (const Json& item : value) {
      if (&item != &value.front()) *out += ", ";
      AppendRepr(item, depth + 1, out);
    }
    *out += ']';
  } else if (value.is_object()) {
    *out += '{';
    const char* between = "";
    for (const auto& [key, member] : value.items()) {
      *out += between + PythonQuoted(key) + ": ";
      AppendRepr(member, depth + 1, out);
      between = ", ";
    }
    *out += '}';
  } else {
    *out += python::IsMoment(value) ? python::MomentFromJson(value).Repr() : "None";
  }
}

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

std::string PythonQuoted(std::string_view text) {
  const bool doubled =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  std::string out(1, quote);
  for (char32_t c : python::Decode(text)) {
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !python::IsPrintable(c))) {
      const auto code = static_cast<uint32_t>(c);
      out += c < 0x100     ? fmt::format("\\x{:02x}", code)
             : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                           : fmt::format("\\U{:08x}", code);
    } else {
      python::AppendUtf8(c, &out);
    }
  }
  return out + quote;
}

std::string PythonRepr(const Json& value) {
  std::string out;
  AppendRepr(value, 0, &out);
  return out;
}

std::string PythonStr(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return python::IsMoment(value) ? python::MomentFromJson(value).Str() : PythonRepr(value);
}

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
  if (python::IsMoment(a) || python::IsMoment(b)) {
    return python::IsMoment(a) && python::IsMoment(b) &&
           python::MomentFromJson(a).seconds == python::MomentFromJson(b).seconds;
  }
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (a.is_number_float() && b.is_number_float()) return a.get<double>() == b.get<double>();
  if (a.is_number_float()) return python::Equal(IntegerOf(b), a.get<double>());
  if (b.is_number_float()) return python::Equal(IntegerOf(a), b.get<double>());
  return IntegerOf(a) == IntegerOf(b);
}

Json PythonLiteral(std::string_view text) { return LiteralReader(text).Run(); }

}  // namespace evald

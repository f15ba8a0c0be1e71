// Python's two ways to format text: "%d" % 3 and "{:>3}".format(3).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "evald/error.h"
#include "jinja/interpreter.h"
#include "python/number.h"
#include "python/unicode.h"

namespace evald::jinja {
namespace {

constexpr int64_t kWidthMax = 1'000'000;

struct Spec {
  char32_t fill = U' ';
  char align = '\0';  ///< '<', '>', '^', '='
  char sign = '-';
  bool alternate = false;
  bool comma = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};

std::string Pad(const std::string& body, size_t sign_length, const Spec& spec, char align) {
  const auto length = static_cast<int64_t>(python::Decode(body).size());
  const int64_t missing = spec.width - length;
  if (missing <= 0) return body;
  const std::string fill = python::Encode(std::u32string(static_cast<size_t>(missing), spec.fill));
  switch (align) {
    case '<':
      return body + fill;
    case '=':
      return body.substr(0, sign_length) + fill + body.substr(sign_length);
    case '^': {
      const auto left = static_cast<size_t>(missing / 2);
      return python::Encode(std::u32string(left, spec.fill)) + body +
             python::Encode(std::u32string(static_cast<size_t>(missing) - left, spec.fill));
    }
    default:
      return fill + body;
  }
}

std::string WithCommas(const std::string& digits) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(end);
}

std::string SignOf(bool negative, char style) {
  return negative ? "-" : style == '+' ? "+" : style == ' ' ? " " : "";
}

std::string IntegerDigits(uint64_t magnitude, char type) {
  switch (type) {
    case 'x':
      return fmt::format("{:x}", magnitude);
    case 'X':
      return fmt::format("{:X}", magnitude);
    case 'o':
      return fmt::format("{:o}", magnitude);
    case 'b':
      return fmt::format("{:b}", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

std::string FormatInteger(int64_t value, const Spec& spec) {
  const uint64_t magnitude =
      value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string digits = IntegerDigits(magnitude, spec.type);
  if (spec.comma) digits = WithCommas(digits);
  std::string sign = SignOf(value < 0, spec.sign);
  if (spec.alternate && spec.type != 'd' && spec.type != '\0') {
    sign += std::string("0") + spec.type;
  }
  return Pad(sign + digits, sign.size(), spec, spec.align == '\0' ? '>' : spec.align);
}

std::string FormatFloat(double value, const Spec& spec) {
  char type = spec.type;
  const bool percent = type == '%';
  if (percent) value *= 100;
  std::string body;
  if (type == '\0' && spec.precision < 0) {
    body = python::FloatRepr(std::abs(value));
  } else {
    if (percent || type == 'F') type = 'f';
    const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
    if (type == '\0') {
      // Like 'g', but with at least one digit after the point, and with repr's rule for the
      // exponent.
      body = python::FormatDouble(std::abs(value), 'g', std::max(precision, 1));
      if (body.find_first_of(".en") == std::string::npos) body += ".0";
    } else {
      body = python::FormatDouble(std::abs(value), type, precision, spec.alternate);
    }
  }
  if (spec.comma) body = WithCommas(body);
  if (percent) body += '%';
  const std::string sign = SignOf(std::signbit(value) && !std::isnan(value), spec.sign);
  return Pad(sign + body, sign.size(), spec, spec.align == '\0' ? '>' : spec.align);
}

std::string FormatText(std::string_view text, const Spec& spec) {
  std::string body(text);
  if (spec.precision >= 0) {
    body = python::Encode(python::Decode(text).substr(0, static_cast<size_t>(spec.precision)));
  }
  return Pad(body, 0, spec, spec.align == '\0' ? '<' : spec.align);
}

// The format specification mini-language of format().
Spec ParseSpec(Interpreter* in, std::string_view text) {
  const std::u32string all = python::Decode(text);
  Spec spec;
  size_t at = 0;
  const auto is_align = [&](size_t i) {
    return i < all.size() && (all[i] == '<' || all[i] == '>' || all[i] == '^' || all[i] == '=');
  };
  if (is_align(1)) {
    spec.fill = all[0];
    spec.align = static_cast<char>(all[1]);
    at = 2;
  } else if (is_align(0)) {
    spec.align = static_cast<char>(all[0]);
    at = 1;
  }
  const auto take = [&](char32_t c) {
    if (at >= all.size() || all[at] != c) return false;
    ++at;
    return true;
  };
  for (char sign : {'+', '-', ' '}) {
    if (take(static_cast<char32_t>(sign))) spec.sign = sign;
  }
  spec.alternate = take('#');
  if (take('0') && spec.align == '\0') {
    spec.fill = U'0';
    spec.align = '=';
  }
  const auto number = [&]() {
    int64_t value = 0;
    while (at < all.size() && all[at] >= '0' && all[at] <= '9') {
      value = std::min<int64_t>(value * 10 + static_cast<int64_t>(all[at++] - '0'), kWidthMax + 1);
    }
    if (value > kWidthMax) in->Fail(fmt::format("a width beyond {} is not supported", kWidthMax));
    return value;
  };
  spec.width = number();
  spec.comma = take(',');
  if (take('.')) {
    if (at >= all.size() || all[at] < '0' || all[at] > '9') in->Fail("format: missing precision");
    spec.precision = number();
  }
  if (at < all.size()) spec.type = static_cast<char>(all[at++]);
  if (at != all.size()) in->Fail(fmt::format("format: '{}' is not understood", text));
  return spec;
}

std::string FormatValue(Interpreter* in, const Value& value, std::string_view text) {
  if (text.empty()) return in->Text(value);
  const Spec spec = ParseSpec(in, text);
  const std::string_view integer_types = "dxXob";
  const std::string_view float_types = "eEfFgG%";
  if (value.IsString()) {
    if (spec.type != '\0' && spec.type != 's') {
      in->Fail(fmt::format("format: '{}' is not for a string", spec.type));
    }
    return FormatText(value.AsText(), spec);
  }
  if (value.IsNumber()) {  // in Python a bool with a specification is an integer
    const bool as_float =
        float_types.find(spec.type) != std::string_view::npos && spec.type != '\0';
    const bool as_int =
        spec.type == '\0' || integer_types.find(spec.type) != std::string_view::npos;
    if (as_float || (!value.IsInteger() && spec.type == '\0')) {
      return FormatFloat(value.AsDouble(), spec);
    }
    if (value.IsInteger() && as_int && spec.precision < 0)
      return FormatInteger(value.AsInt(), spec);
  }
  in->Fail(fmt::format("format: '{}' of a {} is not supported", text, TypeName(value)));
}

// Looks up "0", "name", "name.attribute", "name[key]".
class Fields {
 public:
  Fields(Interpreter* in, const Args& args) : in_(in), args_(args) {}

  Value Find(std::string_view field) {
    const size_t end = std::min(field.find_first_of(".["), field.size());
    const std::string first(field.substr(0, end));
    if (first.find_first_of("{}") != std::string::npos) {
      in_->Fail("format: a field in a field is not supported");
    }
    Value value = First(first);
    std::string_view rest = field.substr(end);
    while (!rest.empty()) {
      const bool attribute = rest[0] == '.';
      rest.remove_prefix(1);
      const size_t stop =
          attribute ? std::min(rest.find_first_of(".["), rest.size()) : rest.find(']');
      if (stop == std::string_view::npos) in_->Fail("format: missing ']'");
      const std::string key(rest.substr(0, stop));
      const bool number = !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
      if (attribute) in_->Fail("format: attributes of fields are not supported");
      value = in_->Item(value, number ? Value(python::ParseInt(key, 10).value_or(0)) : Value(key));
      rest.remove_prefix(stop + 1);
    }
    return value;
  }

 private:
  Value First(const std::string& name) {
    if (name.empty() || name.find_first_not_of("0123456789") == std::string::npos) {
      const size_t at =
          name.empty() ? next_++ : static_cast<size_t>(python::ParseInt(name, 10).value_or(0));
      if (at >= args_.positional.size())
        in_->Fail(fmt::format("format: there is no argument {}", at));
      return args_.positional[at];
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) return value;
    }
    in_->Fail(fmt::format("format: there is no argument '{}'", name));
  }

  Interpreter* in_;
  const Args& args_;
  size_t next_ = 0;
};

// Reads "%-08.3f", beginning after the percent sign.
class PercentReader {
 public:
  PercentReader(Interpreter* in, std::string_view format, const Value& value)
      : in_(in), format_(format), value_(value) {
    const Sequence* sequence = value.sequence();
    tuple_ = sequence != nullptr && sequence->flavour == Sequence::Flavour::kTuple;
  }

  std::string Run() {
    std::string out;
    for (size_t i = 0; i < format_.size(); ++i) {
      if (format_[i] != '%') {
        out += format_[i];
        continue;
      }
      at_ = i + 1;
      out += Conversion();
      CheckSize(out.size());
      i = at_ - 1;
    }
    const bool all_used = tuple_ ? used_ == value_.sequence()->items.size()
                                 : used_ == 1 || value_.dict() != nullptr || value_.IsIndexable();
    if (!all_used && !named_) in_->Fail("not all arguments were used by the format");
    return out;
  }

 private:
  char Peek() {
    if (at_ >= format_.size()) in_->Fail("the format ends in the middle of a field");
    return format_[at_];
  }

  Value NextArgument() {
    if (tuple_) {
      if (used_ >= value_.sequence()->items.size()) in_->Fail("too few arguments for the format");
      return value_.sequence()->items[used_++];
    }
    if (used_++ > 0) in_->Fail("too few arguments for the format");
    return value_;
  }

  int64_t Number() {
    int64_t number = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      number = std::min<int64_t>(number * 10 + (format_[at_++] - '0'), kWidthMax + 1);
    }
    if (number > kWidthMax) in_->Fail(fmt::format("a width beyond {} is not supported", kWidthMax));
    return number;
  }

  std::string Conversion() {
    Spec spec;
    std::optional<Value> argument;
    if (Peek() == '(') {
      const size_t close = format_.find(')', at_);
      if (close == std::string_view::npos || value_.dict() == nullptr) {
        in_->Fail("the format needs a dict");
      }
      argument = in_->Item(value_, Value(std::string(format_.substr(at_ + 1, close - at_ - 1))));
      if (argument->IsUndefined()) in_->Fail("format: " + argument->undefined()->message);
      at_ = close + 1;
      named_ = true;
    }
    for (bool flags = true; flags;) {
      switch (Peek()) {
        case '-':
          spec.align = '<';
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          spec.sign = spec.sign == '+' ? '+' : ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        case '0':
          spec.fill = U'0';
          break;
        default:
          flags = false;
      }
      if (flags) ++at_;
    }
    if (Peek() == '*') in_->Fail("'*' as a width in a format is not supported");
    spec.width = Number();
    if (Peek() == '.') {
      ++at_;
      spec.precision = Number();
    }
    const char type = Peek();
    ++at_;
    if (type == '%') return "%";
    return Convert(type, spec, argument ? *argument : NextArgument());
  }

  // '%c': one character, or the code of a character.
  std::string FormatCharacter(Spec spec, const Value& value) {
    spec.fill = U' ';
    if (spec.align == '\0') spec.align = '>';
    spec.precision = -1;
    if (value.IsString() && python::Decode(value.AsText()).size() == 1) {
      return FormatText(value.AsText(), spec);
    }
    const int64_t code = value.IsInteger() ? value.AsInt() : -1;
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < 0 || code > 0x10ffff || surrogate)
      in_->Fail("the format '%c' needs a character, or the code of one");
    std::string text;
    python::AppendUtf8(static_cast<char32_t>(code), &text);
    return FormatText(text, spec);
  }

  std::string Convert(char type, Spec spec, const Value& value) {
    const bool zero = spec.fill == U'0' && spec.align != '<';
    if (spec.align == '<') spec.fill = U' ';
    if (type == 's' || type == 'r') {
      spec.fill = U' ';
      if (spec.align == '\0') spec.align = '>';
      return FormatText(type == 's' ? in_->Text(value) : Repr(value), spec);
    }
    if (type == 'c') return FormatCharacter(spec, value);
    if (std::string_view("dixXoeEfFgG").find(type) == std::string_view::npos) {
      in_->Fail(fmt::format("the format '%{}' is not supported", type));
    }
    if (!value.IsNumber()) in_->Fail(fmt::format("the format '%{}' needs a number", type));
    if (zero) spec.align = '=';
    if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
      spec.type = type;
      return FormatFloat(value.AsDouble(), spec);
    }
    if (spec.precision >= 0) in_->Fail("a precision of an integer is not supported");
    spec.type = type == 'i' ? 'd' : type;
    if (value.IsInteger()) return FormatInteger(value.AsInt(), spec);
    const double number = std::trunc(value.AsDouble());
    if (spec.type != 'd' || !(std::abs(number) < 9e18)) {
      in_->Fail(fmt::format("the format '%{}' of {} is not supported", type, Repr(value)));
    }
    return FormatInteger(static_cast<int64_t>(number), spec);
  }

  Interpreter* in_;
  std::string_view format_;
  const Value& value_;
  bool tuple_ = false;
  bool named_ = false;
  size_t at_ = 0;
  size_t used_ = 0;
};

}  // namespace

Value FormatPercent(Interpreter* in, const Value& format, const Value& value) {
  std::string out = PercentReader(in, format.AsText(), value).Run();
  in->SpendBytes(out.size());
  return Value(std::move(out));
}

Value FormatBraces(Interpreter* in, std::string_view format, const Args& args) {
  Fields fields(in, args);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out += c;
      ++i;
    } else if (c == '}') {
      in->Fail("format: single '}' in the format");
    } else if (c != '{') {
      out += c;
    } else {
      const size_t close = format.find('}', i);
      if (close == std::string_view::npos) in->Fail("format: expected '}'");
      std::string_view field = format.substr(i + 1, close - i - 1);
      const size_t colon = field.find(':');
      const std::string_view spec =
          colon == std::string_view::npos ? std::string_view() : field.substr(colon + 1);
      field = field.substr(0, colon);
      std::string conversion;
      if (const size_t mark = field.find('!'); mark != std::string_view::npos) {
        conversion = field.substr(mark + 1);
        field = field.substr(0, mark);
      }
      if (spec.find('{') != std::string_view::npos) {
        in->Fail("format: a field in a specification is not supported");
      }
      Value value = fields.Find(field);
      if (conversion == "s") {
        value = Value(in->Text(value));
      } else if (conversion == "r") {
        value = Value(Repr(value));
      } else if (!conversion.empty()) {
        in->Fail(fmt::format("format: the conversion '!{}' is not supported", conversion));
      }
      out += FormatValue(in, value, spec);
      i = close;
    }
    CheckSize(out.size());
  }
  in->SpendBytes(out.size());
  return Value(std::move(out));
}

}  // namespace evald::jinja

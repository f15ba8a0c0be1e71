// Filters that work on text and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/find_text.h"
#include "evald/error.h"
#include "jinja/arithmetic.h"
#include "jinja/interpreter.h"
#include "python/json.h"
#include "python/number.h"
#include "python/regex.h"
#include "python/unicode.h"

namespace evald::jinja {
namespace {

using Filters = std::map<std::string, FilterFunction, std::less<>>;

void RefuseMarkup(Interpreter* in, const Value& value, const char* filter) {
  if (value.IsString() && value.text()->markup) {
    in->Fail(fmt::format("the filter '{}' on a safe string is not supported", filter));
  }
}

template <std::string (*kMap)(std::string_view)>
Value Mapped(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "the filter", args, {}, 0);
  RefuseMarkup(in, subject, "upper, lower or capitalize");
  std::string text = kMap(in->Text(subject));
  in->SpendBytes(text.size());
  return Value(std::move(text));
}

// jinja2's own title: words begin after spaces, hyphens and opening brackets.
std::string TitleWords(std::string_view text) {
  const auto separates = [](char32_t c) {
    return c == '-' || python::IsSpace(c) || c == '(' || c == '{' || c == '[' || c == '<';
  };
  const std::u32string all = python::Decode(text);
  std::string out;
  for (size_t at = 0; at < all.size();) {
    size_t end = at;
    while (end < all.size() && separates(all[end]) == separates(all[at])) ++end;
    const std::u32string_view word = std::u32string_view(all).substr(at, end - at);
    out += python::Upper(python::Encode(word.substr(0, 1)));
    out += python::Lower(python::Encode(word.substr(1)));
    at = end;
  }
  return out;
}

Value Trim(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "trim", args, {"chars"}, 0);
  Args strip;
  if (bound.Has(0)) strip.positional.push_back(bound.At(0));
  RefuseMarkup(in, subject, "trim");
  return CallMethod(in, Value(in->Text(subject)), "strip", strip);
}

// str.replace(old, new, count).
std::string ReplaceText(std::string_view text, std::string_view from, std::string_view to,
                        int64_t count) {
  std::string out;
  if (from.empty()) {
    const std::u32string all = python::Decode(text);
    CheckSize(all.size() + 1, to.size() + 4);
    int64_t done = 0;
    for (size_t i = 0; i <= all.size(); ++i) {
      if (count < 0 || done++ < count) out += to;
      if (i < all.size()) python::AppendUtf8(all[i], &out);
    }
    return out;
  }
  size_t at = 0;
  for (int64_t done = 0; count < 0 || done < count; ++done) {
    const size_t found = FindText(text, from, at);
    if (found == std::string_view::npos) break;
    out.append(text.substr(at, found - at)).append(to);
    CheckSize(out.size());
    at = found + from.size();
  }
  return out.append(text.substr(at));
}

Value Replace(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "replace", args, {"old", "new", "count"}, 2);
  RefuseMarkup(in, subject, "replace");
  const bool all = !bound.Has(2) || bound.At(2).IsNone();
  std::string text = ReplaceText(in->Text(subject), in->Text(bound.At(0)), in->Text(bound.At(1)),
                                 all ? -1 : bound.Int(2, -1));
  in->SpendBytes(text.size());
  return Value(std::move(text));
}

// Expands the replacement of re.sub: \1, \g<1>, \n and similar escapes.
std::string ExpandReplacement(Interpreter* in, std::string_view replacement, std::string_view text,
                              const Regex::Match& match) {
  const auto group = [&](size_t number) -> std::string_view {
    if (number >= match.size())
      in->Fail(fmt::format("regex_replace: there is no group {}", number));
    const Regex::Span& span = match[number];
    return span.matched() ? text.substr(span.begin, span.end - span.begin) : std::string_view();
  };
  std::string out;
  for (size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '\\' || i + 1 >= replacement.size()) {
      out += replacement[i];
      continue;
    }
    const char c = replacement[++i];
    const std::string_view plain = "\\abfnrtv";
    const std::string_view meant = "\\\a\b\f\n\r\t\v";
    if (c >= '1' && c <= '9') {
      size_t number = static_cast<size_t>(c - '0');
      if (i + 1 < replacement.size() && replacement[i + 1] >= '0' && replacement[i + 1] <= '9') {
        number = number * 10 + static_cast<size_t>(replacement[++i] - '0');
      }
      out += group(number);
    } else if (c == 'g' && i + 1 < replacement.size() && replacement[i + 1] == '<') {
      const size_t close = replacement.find('>', i);
      const std::string name(
          replacement.substr(i + 2, close == std::string_view::npos ? 0 : close - i - 2));
      if (name.empty() || name.size() > 4 ||
          name.find_first_not_of("0123456789") != std::string::npos) {
        in->Fail("regex_replace: only \\g<number> is supported in a replacement");
      }
      out += group(static_cast<size_t>(std::stoi(name)));
      i = close;
    } else if (const size_t at = plain.find(c); at != std::string_view::npos) {
      out += meant[at];
    } else {
      in->Fail(fmt::format("regex_replace: '\\{}' in a replacement is not supported", c));
    }
  }
  return out;
}

// lm_eval.utils.regex_replace: re.sub(pattern, repl, string, count=count).
Value RegexReplace(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "regex_replace", args, {"pattern", "repl", "count"}, 2);
  if (!subject.IsString()) in->Fail("regex_replace needs a string");
  const std::string_view text = subject.AsText();
  const std::string replacement = bound.Text(1, "");
  const int64_t count = bound.Int(2, 0);
  std::string out;
  size_t at = 0;
  int64_t done = 0;
  for (const Regex::Match& match : PythonRegex(bound.Text(0, "")).FindAll(text)) {
    if (count > 0 && done++ >= count) break;
    out.append(text.substr(at, match[0].begin - at));
    out += ExpandReplacement(in, replacement, text, match);
    CheckSize(out.size());
    at = match[0].end;
  }
  out.append(text.substr(at));
  in->SpendBytes(out.size());
  return Value(std::move(out));
}

Value Indent(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "indent", args, {"width", "first", "blank"}, 0);
  RefuseMarkup(in, subject, "indent");
  std::string indention;
  if (bound.Has(0) && bound.At(0).IsString()) {
    indention = bound.Text(0, "");
  } else {
    const int64_t width = std::max<int64_t>(bound.Int(0, 4), 0);
    CheckSize(static_cast<uint64_t>(width));
    indention = std::string(static_cast<size_t>(width), ' ');
  }
  const bool blank = bound.Flag(2, false);
  const Value text(in->Text(subject) + "\n");
  const Value lines = CallMethod(in, text, "splitlines", Args{});
  std::string out = bound.Flag(1, false) ? indention : "";
  bool first = true;
  for (const Value& line : lines.sequence()->items) {
    if (!first) {
      out += '\n';
      if (blank || !line.AsText().empty()) out += indention;
    }
    out += line.AsText();
    first = false;
    CheckSize(out.size());
  }
  in->SpendBytes(out.size());
  return Value(std::move(out));
}

Value Truncate(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "truncate", args, {"length", "killwords", "end", "leeway"}, 0);
  const std::u32string text = python::Decode(in->Text(subject));
  const std::u32string end = python::Decode(bound.Text(2, "..."));
  const int64_t length = bound.Int(0, 255);
  const int64_t leeway = bound.Has(3) && !bound.At(3).IsNone() ? bound.Int(3, 5) : 5;
  const auto end_length = static_cast<int64_t>(end.size());
  if (length < end_length || leeway < 0) in->Fail("truncate: the length is too small");
  if (static_cast<int64_t>(text.size()) <= length + leeway) return Value(python::Encode(text));
  std::u32string kept = text.substr(0, static_cast<size_t>(length - end_length));
  if (!bound.Flag(1, false)) kept = kept.substr(0, kept.rfind(U' '));
  return Value(python::Encode(kept + end));
}

Value WordCount(Interpreter* in, const Value& subject, const Args&) {
  int64_t words = 0;
  bool inside = false;
  for (char32_t c : python::Decode(in->Text(subject))) {
    const bool word = python::IsWord(c);
    if (word && !inside) ++words;
    inside = word;
  }
  return Value(words);
}

Value Center(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "center", args, {"width"}, 0);
  Args width;
  width.positional.push_back(Value(bound.Int(0, 80)));
  return CallMethod(in, Value(in->Text(subject)), "center", width);
}

Value FormatFilter(Interpreter* in, const Value& subject, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    in->Fail("format takes positional or named arguments, not both");
  }
  Value values = Value::Tuple(args.positional);
  if (!args.named.empty()) {
    auto dict = std::make_shared<Dict>();
    for (const auto& [name, value] : args.named) dict->Set(Value(name), value);
    values = Value(Value::Storage(std::shared_ptr<const Dict>(std::move(dict))));
  }
  return FormatPercent(in, Value(in->Text(subject)), values);
}

Value Round(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "round", args, {"precision", "method"}, 0);
  const int64_t precision = std::clamp<int64_t>(bound.Int(0, 0), -400, 400);
  const std::string method = bound.Text(1, "common");
  if (!subject.IsNumber()) in->Fail(fmt::format("a {} cannot be rounded", TypeName(subject)));
  if (method == "common") {
    if (!subject.IsInteger()) {
      return Value(python::RoundDouble(subject.AsDouble(), static_cast<int>(precision)));
    }
    if (precision >= 0) return Value(subject.AsInt());
    in->Fail("an integer cannot be rounded to a negative precision here");
  }
  if (method != "ceil" && method != "floor") in->Fail("round: method is common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = subject.AsDouble() * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

// float(value). Throws if the value is no number.
double FloatOf(Interpreter* in, const Value& value) {
  if (value.IsNumber()) return value.AsDouble();
  const auto number = value.IsString() ? python::ParseFloat(value.AsText()) : std::nullopt;
  if (!number) in->Fail(fmt::format("a {} is no number", TypeName(value)));
  return *number;
}

// jinja2's do_filesizeformat.
Value FileSizeFormat(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "filesizeformat", args, {"binary"}, 0);
  const bool binary = bound.Flag(0, false);
  const double base = binary ? 1024 : 1000;
  const double bytes = FloatOf(in, subject);
  if (!std::isfinite(bytes)) in->Fail("filesizeformat needs a finite number");
  if (bytes == 1) return Value(std::string("1 Byte"));
  if (bytes < base)
    return Value(fmt::format("{} Bytes", static_cast<int64_t>(std::max(bytes, -9e18))));
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base * base;
  size_t at = 0;
  for (; at + 1 < kPrefixes.size() && bytes >= unit; ++at) unit *= base;
  const std::string prefix =
      binary ? fmt::format("{}i", at == 0 ? 'K' : kPrefixes[at]) : std::string(1, kPrefixes[at]);
  return Value(fmt::format("{:.1f} {}B", base * bytes / unit, prefix));
}

// urllib.parse.quote of the UTF-8 of str(value). In a query, '/' is quoted too, and a space becomes
// '+'.
std::string UrlQuoted(Interpreter* in, const Value& value, bool in_query) {
  std::string out;
  for (const char c : in->Text(value)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos;
    if (plain || (c == '/' && !in_query)) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  in->SpendBytes(out.size());
  return out;
}

Value UrlEncode(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "urlencode", args, {}, 0);
  RefuseMarkup(in, subject, "urlencode");
  if (subject.sequence() != nullptr || subject.loop() != nullptr)
    in->Fail("urlencode of a list is not supported");
  if (subject.dict() == nullptr) return Value(UrlQuoted(in, subject, false));
  std::string out;
  for (const auto& [key, value] : subject.dict()->items()) {
    if (!out.empty()) out += '&';
    out += UrlQuoted(in, key, true) + '=' + UrlQuoted(in, value, true);
  }
  return Value(std::move(out));
}

Value IntFilter(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "int", args, {"default", "base"}, 0);
  const Value fallback = bound.Or(0, Value(int64_t{0}));
  std::optional<double> number;
  if (subject.IsString()) {
    const auto base = static_cast<int>(std::clamp<int64_t>(bound.Int(1, 10), 0, 37));
    if (const auto value = python::ParseInt(subject.AsText(), base)) return Value(*value);
    number = python::ParseFloat(subject.AsText());
  } else if (subject.IsInteger()) {
    return Value(subject.AsInt());
  } else if (subject.IsNumber()) {
    number = subject.AsDouble();
  }
  if (!number || !std::isfinite(*number)) return fallback;
  if (std::abs(*number) >= 9.2e18) in->Fail("an integer beyond 64 bits is not supported");
  return Value(static_cast<int64_t>(*number));
}

Value FloatFilter(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "float", args, {"default"}, 0);
  if (subject.IsNumber()) return Value(subject.AsDouble());
  if (subject.IsString()) {
    if (const auto value = python::ParseFloat(subject.AsText())) return Value(*value);
  }
  return bound.Or(0, Value(0.0));
}

Value Abs(Interpreter* in, const Value& subject, const Args&) {
  if (!subject.IsNumber()) in->Fail(fmt::format("a {} has no absolute value", TypeName(subject)));
  if (!subject.IsInteger()) return Value(std::abs(subject.AsDouble()));
  return subject.AsInt() < 0 ? Negate(subject) : Value(subject.AsInt());
}

// The `indent` of tojson; -1 for none.
int IndentOf(const BoundArgs& bound, size_t at) {
  if (!bound.Has(at) || bound.At(at).IsNone()) return -1;
  return static_cast<int>(std::clamp<int64_t>(bound.Int(at, 0), 0, 64));
}

std::string DumpJson(const Value& value, PythonJsonStyle style) {
  style.check = [](uint64_t bytes) { CheckSize(bytes); };
  return PythonJson(ToJsonValue(value), style);
}

// transformers' tojson.
std::string ChatJson(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"},
                        0);
  PythonJsonStyle style;
  style.indent = IndentOf(bound, 1);
  if (style.indent >= 0) style.item_separator = ",";
  if (bound.Has(2) && !bound.At(2).IsNone()) {
    const std::vector<Value> pair = in->Items(bound.At(2));
    if (pair.size() != 2) in->Fail("tojson: separators is a pair");
    style.item_separator = in->Text(pair[0]);
    style.key_separator = in->Text(pair[1]);
  }
  style.ensure_ascii = bound.Flag(0, false);
  style.sort_keys = bound.Flag(3, false);
  return DumpJson(subject, style);
}

Value ToJsonFilter(Interpreter* in, const Value& subject, const Args& args) {
  if (subject.IsUndefined()) in->Fail("tojson of an undefined value");
  if (in->options().chat) {
    std::string text = ChatJson(in, subject, args);
    in->SpendBytes(text.size());
    return Value(std::move(text));
  }
  const BoundArgs bound(in, "tojson", args, {"indent"}, 0);
  PythonJsonStyle style;
  style.ensure_ascii = true;
  style.sort_keys = true;
  style.indent = IndentOf(bound, 0);
  if (style.indent >= 0) style.item_separator = ",";
  std::string text = DumpJson(subject, style);
  for (const auto& [plain, safe] :
       {std::pair{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}, {"'", "\\u0027"}}) {
    text = ReplaceText(text, plain, safe, -1);
  }
  in->SpendBytes(text.size());
  return Value::Markup(std::move(text));
}

Value StringFilter(Interpreter* in, const Value& subject, const Args&) {
  return subject.IsString() ? subject : Value(in->Text(subject));
}

Value Default(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "default", args, {"default_value", "boolean"}, 0);
  if (subject.IsUndefined() || (bound.Flag(1, false) && !in->Truth(subject))) {
    return bound.Or(0, Value(""));
  }
  return subject;
}

const Filters& TextFilters() {
  static const Filters kFilters = {
      {"upper", Mapped<python::Upper>},
      {"lower", Mapped<python::Lower>},
      {"capitalize", Mapped<python::Capitalize>},
      {"title", Mapped<TitleWords>},
      {"trim", Trim},
      {"replace", Replace},
      {"regex_replace", RegexReplace},
      {"indent", Indent},
      {"truncate", Truncate},
      {"wordcount", WordCount},
      {"center", Center},
      {"format", FormatFilter},
      {"round", Round},
      {"int", IntFilter},
      {"float", FloatFilter},
      {"abs", Abs},
      {"filesizeformat", FileSizeFormat},
      {"tojson", ToJsonFilter},
      {"urlencode", UrlEncode},
      {"string", StringFilter},
      {"default", Default},
      {"d", Default},
  };
  return kFilters;
}

}  // namespace

FilterFunction FindTextFilter(std::string_view name) {
  const auto found = TextFilters().find(name);
  return found == TextFilters().end() ? nullptr : found->second;
}

std::vector<std::string> FilterNames() {
  std::vector<std::string> names;
  for (const auto& filter : TextFilters()) names.push_back(filter.first);
  for (const char* name :
       {"attr",    "batch",  "count",      "dictsort", "first", "groupby", "items",  "join",
        "last",    "length", "list",       "map",      "max",   "min",     "reject", "rejectattr",
        "reverse", "select", "selectattr", "slice",    "sort",  "sum",     "unique"}) {
    names.emplace_back(name);
  }
  return names;
}

}  // namespace evald::jinja

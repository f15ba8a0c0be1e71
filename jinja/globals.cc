// Functions that every template can call, and json.dumps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>

#include "evald/error.h"
#include "jinja/interpreter.h"
#include "jinja/number.h"
#include "jinja/unicode.h"

namespace evald::jinja {
namespace {

constexpr int64_t kRangeMax = 100'000;  // as jinja2.sandbox.MAX_RANGE

Value Range(Interpreter& in, const Args& args) {
  const BoundArgs bound(&in, "range", args, {"start", "stop", "step"}, 1, 3);
  const int64_t start = bound.Has(1) ? bound.Int(0, 0) : 0;
  const int64_t stop = bound.Has(1) ? bound.Int(1, 0) : bound.Int(0, 0);
  const int64_t step = bound.Int(2, 1);
  if (step == 0) in.Fail("range: the step is 0");
  std::vector<Value> items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (static_cast<int64_t>(items.size()) >= kRangeMax) {
      in.Fail(fmt::format("range: more than {} numbers are not supported", kRangeMax));
    }
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  in.SpendBytes(items.size() * sizeof(Value));
  in.Spend(items.size() / 4);
  return Value::Seq(Sequence::Flavour::kRange, std::move(items));
}

std::shared_ptr<Dict> DictOf(Interpreter& in, const Args& args, const char* name) {
  auto dict = std::make_shared<Dict>();
  if (args.positional.size() > 1) in.Fail(fmt::format("{} takes one dict", name));
  if (!args.positional.empty()) {
    const Value& first = args.positional[0];
    if (first.dict() != nullptr) {
      *dict = *first.dict();
    } else {
      for (const Value& item : in.Items(first)) {
        const std::vector<Value> pair = in.Items(item);
        if (pair.size() != 2) in.Fail(fmt::format("{} takes pairs of key and value", name));
        dict->Set(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [key, value] : args.named) dict->Set(Value(key), value);
  in.SpendBytes(dict->size() * 2 * sizeof(Value));
  return dict;
}

Value MakeDict(Interpreter& in, const Args& args) {
  return Value(Value::Storage(std::shared_ptr<const Dict>(DictOf(in, args, "dict"))));
}

Value MakeNamespace(Interpreter& in, const Args& args) {
  auto space = std::make_shared<Namespace>();
  const std::shared_ptr<Dict> attributes = DictOf(in, args, "namespace");
  for (const auto& [key, value] : attributes->items()) {
    if (value.name_space() != nullptr || value.loop() != nullptr) {
      in.Fail("a namespace or a loop cannot be kept in a namespace");
    }
    space->attributes.emplace_back(in.Text(key), value);
  }
  return Value(Value::Storage(std::move(space)));
}

Value RaiseException(Interpreter& in, const Args& args) {
  const BoundArgs bound(&in, "raise_exception", args, {"message"}, 1);
  in.Stop("the template stops: " + in.Text(bound.At(0)));
}

// Where the conversion of a strftime format ends that begins behind the '%' at `at`: past flags, a
// width and E or O (glibc's). The letter there is the conversion; the end of the format where none
// follows.
size_t ConversionAt(std::string_view format, size_t at) {
  at = format.find_first_not_of("_-0^#+", at);
  if (at != std::string_view::npos) at = format.find_first_not_of("0123456789", at);
  if (at != std::string_view::npos && (format[at] == 'E' || format[at] == 'O')) ++at;
  return std::min(at, format.size());
}

// datetime.strftime's own conversions, of a moment without a time zone and without microseconds:
// '%f' is 000000, and
// '%z' and '%Z' are nothing (CPython 3.11, _strftime in datetime). The C library does the others.
// Refuses conversions that show a time of day where `has_time` is false.
std::string PythonFormat(Interpreter& in, const std::string& format, bool has_time) {
  static constexpr std::string_view kTimeOfDay = "HIklMSpPrRTXcsf";
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const size_t at = ConversionAt(format, i + 1);
    const char letter = at < format.size() ? format[at] : '\0';
    if (!has_time && letter != '\0' && kTimeOfDay.find(letter) != std::string_view::npos) {
      in.Fail(
          fmt::format("strftime_now is asked for the time of day ('{}'), and chat_date names only "
                      "a day; write it "
                      "with a time, such as 2026-01-31T14:05:09",
                      format.substr(i, at + 1 - i)));
    }
    if (at == i + 1 && letter == 'f') {
      out += "000000";
    } else if (at != i + 1 || (letter != 'z' && letter != 'Z')) {
      out += format.substr(i, at + 1 - i);
    }
    i = at;
  }
  return out;
}

Value StrftimeNow(Interpreter& in, const Args& args) {
  const BoundArgs bound(&in, "strftime_now", args, {"format"}, 1);
  const std::optional<ChatDate>& now = in.options().now;
  if (!now) {
    in.Fail(
        "strftime_now makes prompts depend on the date; name the day with chat_date in eval.yaml");
  }
  const auto seconds = static_cast<time_t>(now->seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const std::string asked = bound.Text(0, "");
  if (asked.size() > 1000) in.Fail("strftime_now: the format is too long");
  const std::string format = PythonFormat(in, asked, now->has_time);
  std::string out(16384, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &parts));
  return Value(std::move(out));
}

Value Function(const char* name, Value (*call)(Interpreter&, const Args&)) {
  return Value(Value::Storage(
      std::shared_ptr<const Callable>(std::make_shared<Callable>(Callable{name, call}))));
}

std::string JsonText(std::string_view text, bool ensure_ascii) {
  std::string out = "\"";
  const auto unit = [&out](uint32_t code) { out += fmt::format("\\u{:04x}", code); };
  for (char32_t c : Decode(text)) {
    const std::string_view plain = "\"\\\n\r\t\f\b";
    const std::string_view letter = "\"\\nrtfb";
    const size_t at = c < 0x80 ? plain.find(static_cast<char>(c)) : std::string_view::npos;
    if (at != std::string_view::npos) {
      out += '\\';
      out += letter[at];
    } else if (c < 0x20 || (ensure_ascii && c >= 0x7f && c < 0x10000 && c != 0x7f)) {
      unit(static_cast<uint32_t>(c));
    } else if (ensure_ascii && c >= 0x10000) {
      unit(0xd800 + ((static_cast<uint32_t>(c) - 0x10000) >> 10));
      unit(0xdc00 + ((static_cast<uint32_t>(c) - 0x10000) & 0x3ff));
    } else {
      AppendUtf8(c, &out);
    }
  }
  return out + "\"";
}

class JsonWriter {
 public:
  JsonWriter(bool ensure_ascii, int indent, bool sort_keys, const std::string& item,
             const std::string& key)
      : ensure_ascii_(ensure_ascii),
        indent_(indent),
        sort_keys_(sort_keys),
        item_(item),
        key_(key) {}

  std::string Take(const Json& value) {
    Write(value, 0);
    return std::move(out_);
  }

 private:
  void Line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * static_cast<size_t>(depth), ' ');
    CheckSize(out_.size());
  }

  void WriteNumber(const Json& value) {
    if (!value.is_number_float()) {
      out_ += value.dump();
      return;
    }
    const double number = value.get<double>();
    out_ += std::isnan(number)   ? "NaN"
            : std::isinf(number) ? (number < 0 ? "-Infinity" : "Infinity")
                                 : FloatRepr(number);
  }

  void Write(const Json& value, int depth) {
    if (value.is_string()) {
      out_ += JsonText(value.get_ref<const std::string&>(), ensure_ascii_);
    } else if (value.is_number()) {
      WriteNumber(value);
    } else if (value.is_array()) {
      WriteItems(value, depth, '[', ']', [&](size_t i) { Write(value[i], depth + 1); });
    } else if (value.is_object()) {
      std::vector<std::string> keys;
      for (const auto& item : value.items()) keys.push_back(item.key());
      if (sort_keys_) std::sort(keys.begin(), keys.end());
      WriteItems(value, depth, '{', '}', [&](size_t i) {
        out_ += JsonText(keys[i], ensure_ascii_) + key_;
        Write(value[keys[i]], depth + 1);
      });
    } else {
      out_ += value.dump();
    }
    CheckSize(out_.size());
  }

  template <typename WriteItem>
  void WriteItems(const Json& value, int depth, char open, char close, WriteItem write) {
    out_ += open;
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out_ += item_;
      Line(depth + 1);
      write(i);
    }
    if (!value.empty()) Line(depth);
    out_ += close;
  }

  bool ensure_ascii_;
  int indent_;
  bool sort_keys_;
  const std::string& item_;
  const std::string& key_;
  std::string out_;
};

}  // namespace

const Value* FindGlobal(const TemplateOptions& options, std::string_view name) {
  static const std::map<std::string, Value, std::less<>> kAll = {
      {"range", Function("range", Range)},
      {"dict", Function("dict", MakeDict)},
      {"namespace", Function("namespace", MakeNamespace)}};
  static const std::map<std::string, Value, std::less<>> kChat = {
      {"raise_exception", Function("raise_exception", RaiseException)},
      {"strftime_now", Function("strftime_now", StrftimeNow)}};
  if (const auto found = kAll.find(name); found != kAll.end()) return &found->second;
  if (!options.chat) return nullptr;
  const auto found = kChat.find(name);
  return found == kChat.end() ? nullptr : &found->second;
}

std::string DumpJson(const Value& value, bool ensure_ascii, int indent, bool sort_keys,
                     const std::string& item_separator, const std::string& key_separator) {
  return JsonWriter(ensure_ascii, indent, sort_keys, item_separator, key_separator)
      .Take(ToJsonValue(value));
}

}  // namespace evald::jinja

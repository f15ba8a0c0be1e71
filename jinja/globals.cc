// Functions that every template may call.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "evald/error.h"
#include "jinja/interpreter.h"

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

// The place of the conversion's letter in a strftime format, for the '%' at `at`. The letter
// follows the flags, the width and E or O (glibc's). The end of the format if there is no letter.
size_t ConversionAt(std::string_view format, size_t at) {
  at = format.find_first_not_of("_-0^#+", at);
  if (at != std::string_view::npos) at = format.find_first_not_of("0123456789", at);
  if (at != std::string_view::npos && (format[at] == 'E' || format[at] == 'O')) ++at;
  return std::min(at, format.size());
}

// The conversions that datetime.strftime makes itself, for a moment without a time zone and without
// microseconds: '%f' is 000000, and '%z' and '%Z' are empty (CPython 3.11, _strftime in datetime).
// The C library makes the others. Refuses conversions that show a time of day if `has_time` is
// false.
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

}  // namespace evald::jinja

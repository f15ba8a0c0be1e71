// Methods of str, dict, list and loop.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/find_text.h"
#include "evald/error.h"
#include "jinja/interpreter.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald::jinja {
namespace {

using Method = Value (*)(Interpreter*, const Value&, const Args&);

std::string_view TextOf(const Value& value) { return value.AsText(); }

// Parts of a text as values. Each is counted before it is made.
class Parts {
 public:
  explicit Parts(Interpreter* in) : in_(in) {}

  void Add(std::string_view part) {
    in_->Spend(1);
    in_->SpendBytes(kTextItemBytes + part.size());
    values_.emplace_back(std::string(part));
  }
  Value List(bool reversed) {
    if (reversed) std::reverse(values_.begin(), values_.end());
    return Value::List(std::move(values_));
  }

 private:
  Interpreter* in_;
  std::vector<Value> values_;
};

Value Strip(Interpreter* in, const Value& subject, const Args& args, const char* name, bool left,
            bool right) {
  const BoundArgs bound(in, name, args, {"chars"}, 0, 1);
  std::string_view text = TextOf(subject);
  if (bound.Has(0) && !bound.At(0).IsNone()) {
    return Value(std::string(python::StripCharacters(text, bound.Text(0, ""), left, right)));
  }
  if (left) text = python::StripLeft(text);
  if (right) text = python::StripRight(text);
  return Value(std::string(text));
}

Value SplitMethod(Interpreter* in, const Value& subject, const Args& args, bool from_right) {
  const BoundArgs bound(in, from_right ? "rsplit" : "split", args, {"sep", "maxsplit"}, 0);
  const int64_t limit = bound.Int(1, -1);
  Parts parts(in);
  const auto add = [&parts](std::string_view part) { parts.Add(part); };
  if (!bound.Has(0) || bound.At(0).IsNone()) {
    python::Split(TextOf(subject), limit, from_right, add);
  } else {
    const std::string separator = bound.Text(0, "");
    if (separator.empty()) in->Fail("split at an empty separator");
    python::Split(TextOf(subject), separator, limit, from_right, add);
  }
  return parts.List(from_right);
}

Value SplitLines(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "splitlines", args, {"keepends"}, 0);
  Parts parts(in);
  python::SplitLines(TextOf(subject), bound.Flag(0, false),
                     [&parts](std::string_view part) { parts.Add(part); });
  return parts.List(false);
}

Value Replace(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "replace", args, {"old", "new", "count"}, 2, 3);
  return in->Filter("replace", subject, args);
}

// The byte range of text[start:end], whose bounds count code points.
std::string_view Window(const BoundArgs& bound, std::string_view text, int64_t* offset) {
  const std::u32string all = python::Decode(text);
  const auto size = static_cast<int64_t>(all.size());
  const auto clip = [size](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const bool from_given = bound.Has(1) && !bound.At(1).IsNone();
  const bool to_given = bound.Has(2) && !bound.At(2).IsNone();
  const int64_t from = from_given ? clip(std::max(bound.Int(1, 0), -size)) : 0;
  const int64_t to = to_given ? clip(std::max(bound.Int(2, 0), -size)) : size;
  *offset = from;
  if (from > to || (from_given && bound.Int(1, 0) > size)) {
    *offset = -1;
    return "";
  }
  const std::u32string_view view(all);
  const size_t skipped = python::Encode(view.substr(0, static_cast<size_t>(from))).size();
  const size_t length =
      python::Encode(view.substr(static_cast<size_t>(from), static_cast<size_t>(to - from))).size();
  return text.substr(skipped, length);
}

int64_t FindIn(const BoundArgs& bound, const Value& subject, bool last) {
  int64_t offset = 0;
  const std::string needle = bound.Text(0, "");
  const std::string_view window = Window(bound, TextOf(subject), &offset);
  if (offset < 0) return -1;
  const size_t found = last ? FindLastText(window, needle) : FindText(window, needle);
  if (found == std::string_view::npos) return -1;
  return offset + static_cast<int64_t>(python::Decode(window.substr(0, found)).size());
}

template <bool kLast>
Value Find(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "find", args, {"sub", "start", "end"}, 1, 3);
  return Value(FindIn(bound, subject, kLast));
}

template <bool kLast>
Value Index(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "index", args, {"sub", "start", "end"}, 1, 3);
  const int64_t found = FindIn(bound, subject, kLast);
  if (found < 0) in->Fail("index: the text is not found");
  return Value(found);
}

Value CountText(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "count", args, {"sub", "start", "end"}, 1, 3);
  const std::string needle = bound.Text(0, "");
  int64_t offset = 0;
  const std::string_view window = Window(bound, TextOf(subject), &offset);
  if (offset < 0) return Value(int64_t{0});
  if (needle.empty()) return Value(static_cast<int64_t>(python::Decode(window).size()) + 1);
  int64_t count = 0;
  for (size_t at = FindText(window, needle); at != std::string_view::npos;
       at = FindText(window, needle, at + needle.size())) {
    ++count;
  }
  return Value(count);
}

template <bool kEnd>
Value Affix(Interpreter* in, const Value& subject, const Args& args) {
  const char* const name = kEnd ? "endswith" : "startswith";
  const BoundArgs bound(in, name, args, {"affix", "start", "end"}, 1, 3);
  int64_t offset = 0;
  const std::string_view window = Window(bound, TextOf(subject), &offset);
  const auto matches = [&](const Value& affix) {
    if (!affix.IsString()) in->Fail(fmt::format("{} needs a string", name));
    const std::string_view text = affix.AsText();
    if (offset < 0 || text.size() > window.size()) return false;
    return window.compare(kEnd ? window.size() - text.size() : 0, text.size(), text) == 0;
  };
  const Sequence* choices = bound.At(0).sequence();
  if (choices == nullptr) return Value(matches(bound.At(0)));
  return Value(std::any_of(choices->items.begin(), choices->items.end(), matches));
}

template <bool kEnd>
Value RemoveAffix(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, kEnd ? "removesuffix" : "removeprefix", args, {"affix"}, 1, 1);
  const std::string affix = bound.Text(0, "");
  std::string_view text = TextOf(subject);
  if (text.size() >= affix.size() && !affix.empty()) {
    if (kEnd && text.substr(text.size() - affix.size()) == affix) text.remove_suffix(affix.size());
    if (!kEnd && text.substr(0, affix.size()) == affix) text.remove_prefix(affix.size());
  }
  return Value(std::string(text));
}

template <bool kLast>
Value Partition(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, kLast ? "rpartition" : "partition", args, {"sep"}, 1, 1);
  const std::string separator = bound.Text(0, "");
  if (separator.empty()) in->Fail("partition at an empty separator");
  const std::string_view text = TextOf(subject);
  const size_t found = kLast ? FindLastText(text, separator) : FindText(text, separator);
  if (found == std::string_view::npos) {
    const Value all{std::string(text)};
    return kLast ? Value::Tuple({Value(""), Value(""), all})
                 : Value::Tuple({all, Value(""), Value("")});
  }
  return Value::Tuple({Value(std::string(text.substr(0, found))), Value(separator),
                       Value(std::string(text.substr(found + separator.size())))});
}

Value JoinText(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "join", args, {"iterable"}, 1, 1);
  std::string out;
  bool first = true;
  for (const Value& item : in->Items(bound.At(0))) {
    if (!item.IsString()) in->Fail(fmt::format("join needs strings, found a {}", TypeName(item)));
    if (!first) out += TextOf(subject);
    first = false;
    out += item.AsText();
    CheckSize(out.size());
  }
  in->SpendBytes(out.size());
  return Value(std::move(out));
}

// -1: text on the left, 0: in the middle, 1: on the right.
Value Justify(Interpreter* in, const Value& subject, const Args& args, const char* name, int side) {
  const BoundArgs bound(in, name, args, {"width", "fillchar"}, 1, 2);
  const std::u32string fill = python::Decode(bound.Text(1, " "));
  if (fill.size() != 1) in->Fail(fmt::format("{}: the fill is not one character", name));
  const int64_t width = bound.Int(0, 0);
  const std::u32string text = python::Decode(TextOf(subject));
  const int64_t missing = width - static_cast<int64_t>(text.size());
  if (missing <= 0) return Value(std::string(TextOf(subject)));
  CheckSize(static_cast<uint64_t>(missing) * 4);
  const int64_t left = side < 0 ? 0 : side > 0 ? missing : missing / 2 + (missing & width & 1);
  in->SpendBytes(static_cast<uint64_t>(missing));
  return Value(python::Encode(std::u32string(static_cast<size_t>(left), fill[0]) + text +
                              std::u32string(static_cast<size_t>(missing - left), fill[0])));
}

Value ZeroFill(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "zfill", args, {"width"}, 1, 1);
  const std::u32string text = python::Decode(TextOf(subject));
  const int64_t missing = bound.Int(0, 0) - static_cast<int64_t>(text.size());
  if (missing <= 0) return subject;
  CheckSize(static_cast<uint64_t>(missing));
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::u32string zeros(static_cast<size_t>(missing), U'0');
  return Value(python::Encode(text.substr(0, sign) + zeros + text.substr(sign)));
}

template <bool (*kIs)(char32_t)>
Value All(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "a test of characters", args, {}, 0);
  const std::u32string text = python::Decode(TextOf(subject));
  return Value(!text.empty() && std::all_of(text.begin(), text.end(), kIs));
}

bool IsAlnum(char32_t c) {
  return python::IsAlpha(c) || python::IsDigit(c) || python::IsDecimal(c);
}

template <bool kUpper>
Value AllCased(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, kUpper ? "isupper" : "islower", args, {}, 0);
  bool cased = false;
  for (char32_t c : python::Decode(TextOf(subject))) {
    const bool upper = python::IsUpper(c), lower = python::IsLower(c);
    if (python::IsTitle(c) || (kUpper ? lower : upper)) return Value(false);
    cased = cased || (kUpper ? upper : lower);
  }
  return Value(cased);
}

template <std::string (*kMap)(std::string_view)>
Value Mapped(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "a change of case", args, {}, 0);
  return Value(kMap(TextOf(subject)));
}

const std::map<std::string, Method, std::less<>>& TextMethods() {
  static const std::map<std::string, Method, std::less<>> kMethods = {
      {"strip", [](Interpreter* in, const Value& s,
                   const Args& a) { return Strip(in, s, a, "strip", true, true); }},
      {"lstrip", [](Interpreter* in, const Value& s,
                    const Args& a) { return Strip(in, s, a, "lstrip", true, false); }},
      {"rstrip", [](Interpreter* in, const Value& s,
                    const Args& a) { return Strip(in, s, a, "rstrip", false, true); }},
      {"split",
       [](Interpreter* in, const Value& s, const Args& a) { return SplitMethod(in, s, a, false); }},
      {"rsplit",
       [](Interpreter* in, const Value& s, const Args& a) { return SplitMethod(in, s, a, true); }},
      {"ljust", [](Interpreter* in, const Value& s,
                   const Args& a) { return Justify(in, s, a, "ljust", -1); }},
      {"rjust", [](Interpreter* in, const Value& s,
                   const Args& a) { return Justify(in, s, a, "rjust", 1); }},
      {"center", [](Interpreter* in, const Value& s,
                    const Args& a) { return Justify(in, s, a, "center", 0); }},
      {"format", [](Interpreter* in, const Value& s,
                    const Args& a) { return FormatBraces(in, TextOf(s), a); }},
      {"splitlines", SplitLines},
      {"replace", Replace},
      {"find", Find<false>},
      {"rfind", Find<true>},
      {"index", Index<false>},
      {"rindex", Index<true>},
      {"count", CountText},
      {"startswith", Affix<false>},
      {"endswith", Affix<true>},
      {"removeprefix", RemoveAffix<false>},
      {"removesuffix", RemoveAffix<true>},
      {"partition", Partition<false>},
      {"rpartition", Partition<true>},
      {"join", JoinText},
      {"zfill", ZeroFill},
      {"upper", Mapped<python::Upper>},
      {"lower", Mapped<python::Lower>},
      {"title", Mapped<python::Title>},
      {"capitalize", Mapped<python::Capitalize>},
      {"swapcase", Mapped<python::SwapCase>},
      {"isdigit", All<python::IsDigit>},
      {"isdecimal", All<python::IsDecimal>},
      {"isalpha", All<python::IsAlpha>},
      {"isalnum", All<IsAlnum>},
      {"isspace", All<python::IsSpace>},
      {"isupper", AllCased<true>},
      {"islower", AllCased<false>},
  };
  return kMethods;
}

std::vector<Value> DictPart(const Dict& dict, bool keys, bool values) {
  std::vector<Value> out;
  for (const auto& [key, value] : dict.items()) {
    out.push_back(keys && values ? Value::Tuple({key, value}) : keys ? key : value);
  }
  return out;
}

Value DictView(Interpreter* in, const Value& subject, const Args& args, bool keys, bool values) {
  const BoundArgs bound(in, "items, keys or values", args, {}, 0);
  in->SpendBytes(subject.dict()->size() * (kSequenceItemBytes + 2 * sizeof(Value)));
  in->Spend(subject.dict()->size() / 4);
  return Value::Seq(Sequence::Flavour::kView, DictPart(*subject.dict(), keys, values));
}

Value DictGet(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "get", args, {"key", "default"}, 1, 2);
  const Value* found = subject.dict()->Find(bound.At(0));
  return found != nullptr ? *found : bound.Or(1, Value());
}

const std::map<std::string, Method, std::less<>>& DictMethods() {
  static const std::map<std::string, Method, std::less<>> kMethods = {
      {"get", DictGet},
      {"items", [](Interpreter* in, const Value& s,
                   const Args& a) { return DictView(in, s, a, true, true); }},
      {"keys", [](Interpreter* in, const Value& s,
                  const Args& a) { return DictView(in, s, a, true, false); }},
      {"values", [](Interpreter* in, const Value& s,
                    const Args& a) { return DictView(in, s, a, false, true); }},
      {"copy", [](Interpreter*, const Value& s, const Args&) { return s; }},
  };
  return kMethods;
}

Value SequenceIndex(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "index", args, {"value"}, 1, 1);
  const auto& items = subject.sequence()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (in->Same(items[i], bound.At(0))) return Value(static_cast<int64_t>(i));
  }
  in->Fail("index: the value is not in the list");
}

Value SequenceCount(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "count", args, {"value"}, 1, 1);
  const auto& items = subject.sequence()->items;
  return Value(static_cast<int64_t>(std::count_if(
      items.begin(), items.end(), [&](const Value& item) { return in->Same(item, bound.At(0)); })));
}

const std::map<std::string, Method, std::less<>>& SequenceMethods() {
  static const std::map<std::string, Method, std::less<>> kMethods = {
      {"index", SequenceIndex},
      {"count", SequenceCount},
      {"copy", [](Interpreter*, const Value& s, const Args&) { return s; }},
  };
  return kMethods;
}

Value LoopCycle(Interpreter* in, const Value& subject, const Args& args) {
  if (args.positional.empty()) in->Fail("loop.cycle needs values");
  return args.positional[subject.loop()->index % args.positional.size()];
}

Value LoopChanged(Interpreter* in, const Value& subject, const Args& args) {
  const std::shared_ptr<LoopState> loop = subject.loop();
  for (const Value& value : args.positional) {
    if (value.name_space() != nullptr || value.loop() != nullptr) {
      in->Fail("loop.changed of a namespace or a loop is not supported");
    }
  }
  Value now = Value::Tuple(args.positional);
  const bool changed = loop->changed == nullptr || !in->Same(*loop->changed, now);
  loop->changed = std::make_shared<Value>(std::move(now));
  return Value(changed);
}

const std::map<std::string, Method, std::less<>>& LoopMethods() {
  static const std::map<std::string, Method, std::less<>> kMethods = {{"cycle", LoopCycle},
                                                                      {"changed", LoopChanged}};
  return kMethods;
}

// Methods that Python has and this engine lacks.
const std::set<std::string, std::less<>>& RefusedMethods(const Value& subject) {
  static const std::set<std::string, std::less<>> kText = {
      "casefold",  "encode",      "expandtabs", "format_map", "isascii",  "isidentifier",
      "isnumeric", "isprintable", "istitle",    "maketrans",  "translate"};
  static const std::set<std::string, std::less<>> kDict = {"clear",   "fromkeys",   "pop",
                                                           "popitem", "setdefault", "update"};
  static const std::set<std::string, std::less<>> kList = {"append", "clear",  "extend",  "insert",
                                                           "pop",    "remove", "reverse", "sort"};
  static const std::set<std::string, std::less<>> kNumber = {
      "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
      "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
      "numerator",        "real",      "to_bytes"};
  static const std::set<std::string, std::less<>> kNone;
  if (subject.IsString()) return kText;
  if (subject.dict() != nullptr) return kDict;
  if (subject.IsNumber()) return kNumber;
  if (subject.IsIndexable() && subject.sequence()->flavour == Sequence::Flavour::kList)
    return kList;
  return kNone;
}

Method FindMethod(const Value& subject, const std::string& name) {
  const std::map<std::string, Method, std::less<>>* methods = nullptr;
  if (subject.IsString()) {
    methods = &TextMethods();
  } else if (subject.dict() != nullptr) {
    methods = &DictMethods();
  } else if (subject.IsIndexable()) {
    if (name == "copy" && subject.sequence()->flavour != Sequence::Flavour::kList) return nullptr;
    methods = &SequenceMethods();
  } else if (subject.loop() != nullptr) {
    methods = &LoopMethods();
  }
  if (methods == nullptr) return nullptr;
  const auto found = methods->find(name);
  return found == methods->end() ? nullptr : found->second;
}

}  // namespace

bool HasMethod(Interpreter* in, const Value& subject, const std::string& name) {
  if (FindMethod(subject, name) != nullptr) return true;
  if (RefusedMethods(subject).count(name) != 0) {
    in->Fail(fmt::format("the method '{}' of {} is not supported", name, TypeName(subject)));
  }
  return false;
}

Value CallMethod(Interpreter* in, const Value& subject, const std::string& name, const Args& args) {
  const Method method = FindMethod(subject, name);
  if (method == nullptr) in->Fail(fmt::format("a {} has no method '{}'", TypeName(subject), name));
  if (subject.IsString() && subject.text()->markup) {
    in->Fail(fmt::format("the method '{}' of a safe string is not supported", name));
  }
  Value result = method(in, subject, args);
  if (result.IsString()) in->SpendBytes(result.AsText().size());
  return result;
}

}  // namespace evald::jinja

#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evald/error.h"
#include "python/number.h"
#include "python/value.h"

namespace evald::jinja {
namespace {

constexpr uint64_t kValueBytesMax = 64ull << 20;
constexpr size_t kIndexFrom = 8;  // the search in smaller dicts goes from front to back

[[noreturn]] void Fail(std::string message, std::string remedy = "") {
  throw Error(ErrorKind::kInput, std::move(message), std::move(remedy));
}

void CheckWeight(uint64_t weight, int depth) {
  if (weight > kWeightMax || depth > kDepthMax) {
    Fail(fmt::format("the template makes a value of more than {} parts or {} levels", kWeightMax,
                     kDepthMax));
  }
}

int Rank(const Value& value) {
  if (value.IsNumber()) return 1;
  if (value.IsString()) return 2;
  if (value.moment() != nullptr) return 6;
  if (const Sequence* sequence = value.sequence()) {
    return sequence->flavour == Sequence::Flavour::kList    ? 3
           : sequence->flavour == Sequence::Flavour::kTuple ? 4
                                                            : 5;
  }
  return 0;
}

bool EqualNumbers(const Value& a, const Value& b) {
  if (a.IsInteger() && b.IsInteger()) return a.AsInt() == b.AsInt();
  if (!a.IsInteger() && !b.IsInteger()) return a.AsDouble() == b.AsDouble();
  return a.IsInteger() ? python::Equal(a.AsInt(), b.AsDouble())
                       : python::Equal(b.AsInt(), a.AsDouble());
}

bool EqualSequences(const Sequence& a, const Sequence& b) {
  if (a.flavour != b.flavour || a.items.size() != b.items.size()) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(),
                    [](const Value& x, const Value& y) { return Equals(x, y); });
}

bool EqualDicts(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.items().begin(), a.items().end(), [&b](const auto& item) {
    const Value* other = b.Find(item.first);
    return other != nullptr && Equals(item.second, *other);
  });
}

std::string JoinReprs(const std::vector<Value>& items) {
  std::string out;
  for (const Value& item : items) {
    if (!out.empty()) out += ", ";
    out += Repr(item);
  }
  return out;
}

std::string ReprSequence(const Sequence& sequence) {
  switch (sequence.flavour) {
    case Sequence::Flavour::kList:
      return "[" + JoinReprs(sequence.items) + "]";
    case Sequence::Flavour::kTuple:
      return "(" + JoinReprs(sequence.items) + (sequence.items.size() == 1 ? ",)" : ")");
    default:
      Fail("a range, view or generator has no text",
           "pass it through the filter `list` before it is printed");
  }
}

std::string ReprDict(const Dict& dict) {
  std::string out = "{";
  for (const auto& [key, value] : dict.items()) {
    if (out.size() > 1) out += ", ";
    out += Repr(key) + ": " + Repr(value);
  }
  return out + "}";
}

}  // namespace

void CheckSize(uint64_t bytes) {
  if (bytes > kValueBytesMax) {
    Fail(fmt::format("the template makes a value of more than {} MiB", kValueBytesMax >> 20));
  }
}

void CheckSize(uint64_t count, uint64_t bytes) {
  if (bytes != 0 && count > kValueBytesMax / bytes) CheckSize(kValueBytesMax + 1);
}

const Value* Dict::Find(const Value& key) const {
  if (index_.empty()) {
    if (key.IsString()) return Find(key.AsText());
    const std::string hash = HashKey(key);
    for (const auto& item : items_) {
      if (HashKey(item.first) == hash) return &item.second;
    }
    return nullptr;
  }
  const auto found = index_.find(HashKey(key));
  return found == index_.end() ? nullptr : &items_[found->second].second;
}

const Value* Dict::Find(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find("s" + std::string(key));
    return found == index_.end() ? nullptr : &items_[found->second].second;
  }
  for (const auto& item : items_) {
    if (item.first.IsString() && item.first.AsText() == key) return &item.second;
  }
  return nullptr;
}

void Dict::Set(Value key, Value value) {
  const std::string hash = HashKey(key);
  weight_ += key.Weight() + value.Weight();
  depth_ = std::max(depth_, 1 + std::max(key.Depth(), value.Depth()));
  CheckWeight(weight_, depth_);
  if (const Value* found = Find(key)) {
    *const_cast<Value*>(found) = std::move(value);  // an item of this dict, which is not const
    return;
  }
  items_.emplace_back(std::move(key), std::move(value));
  if (items_.size() == kIndexFrom) {
    for (size_t i = 0; i < items_.size(); ++i) index_.emplace(HashKey(items_[i].first), i);
  } else if (items_.size() > kIndexFrom) {
    index_.emplace(hash, items_.size() - 1);
  }
}

Value Value::Undef(std::string message, bool lenient) {
  return Value(Storage(std::make_shared<const Undefined>(Undefined{std::move(message), lenient})));
}
Value Value::Markup(std::string text) {
  return Value(Storage(std::make_shared<const Text>(Text{std::move(text), true})));
}
Value Value::List(std::vector<Value> items) {
  return Seq(Sequence::Flavour::kList, std::move(items));
}
Value Value::Tuple(std::vector<Value> items) {
  return Seq(Sequence::Flavour::kTuple, std::move(items));
}
Value Value::Seq(Sequence::Flavour flavour, std::vector<Value> items) {
  auto sequence = std::make_shared<Sequence>();
  sequence->flavour = flavour;
  for (const Value& item : items) {
    sequence->weight += item.Weight();
    sequence->depth = std::max(sequence->depth, 1 + item.Depth());
  }
  CheckWeight(sequence->weight, sequence->depth);
  sequence->items = std::move(items);
  return Value(Storage(std::shared_ptr<const Sequence>(std::move(sequence))));
}

Value Value::FromJson(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        Fail(fmt::format("the integer {} is beyond 64 bits", json.get<uint64_t>()));
      }
      return Value(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return Value(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(FromJson(item));
      return List(std::move(items));
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& item : json.items()) dict->Set(Value(item.key()), FromJson(item.value()));
      return Value(Storage(std::shared_ptr<const Dict>(std::move(dict))));
    }
    default:
      return python::IsMoment(json) ? Value(Storage(python::MomentFromJson(json))) : Value();
  }
}

std::shared_ptr<LoopState> Value::loop() const {
  const auto* held = std::get_if<std::shared_ptr<LoopState>>(&storage_);
  return held == nullptr ? nullptr : *held;
}

bool Value::IsInteger() const {
  return std::holds_alternative<bool>(storage_) || std::holds_alternative<int64_t>(storage_);
}
bool Value::IsNumber() const { return IsInteger() || std::holds_alternative<double>(storage_); }
int64_t Value::AsInt() const {
  const bool* flag = std::get_if<bool>(&storage_);
  return flag != nullptr ? static_cast<int64_t>(*flag) : std::get<int64_t>(storage_);
}
double Value::AsDouble() const {
  const double* number = std::get_if<double>(&storage_);
  return number != nullptr ? *number : static_cast<double>(AsInt());
}
bool Value::IsIndexable() const {
  const Sequence* held = sequence();
  return held != nullptr && held->flavour != Sequence::Flavour::kView &&
         held->flavour != Sequence::Flavour::kGenerator;
}

uint64_t Value::Weight() const {
  if (const Text* held = text()) return 1 + held->bytes.size() / 64;
  if (const Sequence* held = sequence()) return held->weight;
  if (const Dict* held = dict()) return held->weight();
  return 1;
}

int Value::Depth() const {
  if (const Sequence* held = sequence()) return held->depth;
  if (const Dict* held = dict()) return held->depth();
  return 0;
}

std::string TypeName(const Value& value) {
  static const char* const kNames[] = {
      "Undefined", "NoneType", "bool",     "int",       "float",       "str",
      "list",      "dict",     "function", "Namespace", "LoopContext", "datetime.datetime"};
  if (const Sequence* sequence = value.sequence()) {
    static const char* const kFlavours[] = {"list", "tuple", "range", "dict view", "generator"};
    return kFlavours[static_cast<int>(sequence->flavour)];
  }
  return kNames[value.storage().index()];
}

bool Truthy(const Value& value) {
  if (value.IsUndefined() || value.IsNone()) return false;
  if (value.IsNumber()) return value.IsInteger() ? value.AsInt() != 0 : value.AsDouble() != 0;
  if (const Text* text = value.text()) return !text->bytes.empty();
  if (const Sequence* sequence = value.sequence()) {
    return sequence->flavour == Sequence::Flavour::kGenerator || !sequence->items.empty();
  }
  if (const Dict* dict = value.dict()) return dict->size() != 0;
  return true;
}

std::string Str(const Value& value) {
  if (const Text* text = value.text()) return text->bytes;
  if (value.IsUndefined()) return "";
  if (const python::Moment* moment = value.moment()) return moment->Str();
  return Repr(value);
}

std::string Repr(const Value& value) {
  if (value.IsNone()) return "None";
  if (const bool* flag = value.Get<bool>()) return *flag ? "True" : "False";
  if (const int64_t* number = value.Get<int64_t>()) return std::to_string(*number);
  if (const double* number = value.Get<double>()) return python::FloatRepr(*number);
  if (const Text* text = value.text()) {
    if (text->markup) Fail("the repr of a safe string is not supported");
    return PythonQuoted(text->bytes);
  }
  if (const Sequence* sequence = value.sequence()) return ReprSequence(*sequence);
  if (const Dict* dict = value.dict()) return ReprDict(*dict);
  if (value.IsUndefined()) return "Undefined";
  if (const python::Moment* moment = value.moment()) return moment->Repr();
  Fail(fmt::format("a {} has no text to print", TypeName(value)));
}

bool Equals(const Value& a, const Value& b) {
  if (a.IsUndefined() || b.IsUndefined()) return a.IsUndefined() && b.IsUndefined();
  if (a.IsNumber() && b.IsNumber()) return EqualNumbers(a, b);
  if (a.IsString() && b.IsString()) return a.AsText() == b.AsText();
  if (a.sequence() != nullptr && b.sequence() != nullptr) {
    return a.sequence() == b.sequence() || EqualSequences(*a.sequence(), *b.sequence());
  }
  if (a.dict() != nullptr && b.dict() != nullptr) return EqualDicts(*a.dict(), *b.dict());
  if (a.moment() != nullptr && b.moment() != nullptr)
    return a.moment()->seconds == b.moment()->seconds;
  return a.IsNone()
             ? b.IsNone()
             : a.storage().index() == b.storage().index() && a.callable() == b.callable() &&
                   a.name_space() == b.name_space() && a.loop() == b.loop() &&
                   (a.callable() != nullptr || a.name_space() != nullptr || a.loop() != nullptr);
}

bool Less(const Value& a, const Value& b) {
  const int rank = Rank(a);
  if (rank == 0 || rank == 5 || rank != Rank(b)) {
    Fail(fmt::format("'<' between {} and {} is not defined", TypeName(a), TypeName(b)));
  }
  if (rank == 1) {
    if (a.IsInteger() && b.IsInteger()) return a.AsInt() < b.AsInt();
    const auto wide = [](const Value& v) {
      return v.IsInteger() ? static_cast<long double>(v.AsInt())
                           : static_cast<long double>(v.AsDouble());
    };
    return wide(a) < wide(b);
  }
  if (rank == 2) return a.AsText() < b.AsText();
  if (rank == 6) return a.moment()->seconds < b.moment()->seconds;
  const auto& left = a.sequence()->items;
  const auto& right = b.sequence()->items;
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (!Equals(left[i], right[i])) return Less(left[i], right[i]);
  }
  return left.size() < right.size();
}

std::string HashKey(const Value& value) {
  if (const Text* text = value.text()) return "s" + text->bytes;
  if (value.IsNone()) return "0";
  if (value.IsInteger()) return "n" + std::to_string(value.AsInt());
  if (const double* number = value.Get<double>()) {
    if (std::floor(*number) == *number && std::fabs(*number) < 9e18) {
      return "n" + std::to_string(static_cast<int64_t>(*number));
    }
    return "f" + python::FloatRepr(*number);
  }
  const Sequence* sequence = value.sequence();
  if (sequence != nullptr && sequence->flavour == Sequence::Flavour::kTuple) {
    std::string key = "t";
    for (const Value& item : sequence->items) {
      const std::string part = HashKey(item);
      key += std::to_string(part.size()) + ":" + part;
    }
    return key;
  }
  Fail(fmt::format("a {} cannot be a key", TypeName(value)));
}

Json ToJsonValue(const Value& value) {
  if (value.IsNone()) return nullptr;
  if (const bool* flag = value.Get<bool>()) return *flag;
  if (const int64_t* number = value.Get<int64_t>()) return *number;
  if (const double* number = value.Get<double>()) return *number;
  if (const Text* text = value.text()) return text->bytes;
  const Sequence* sequence = value.sequence();
  if (sequence != nullptr && (sequence->flavour == Sequence::Flavour::kList ||
                              sequence->flavour == Sequence::Flavour::kTuple)) {
    Json out = Json::array();
    for (const Value& item : sequence->items) out.push_back(ToJsonValue(item));
    return out;
  }
  if (const Dict* dict = value.dict()) {
    Json out = Json::object();
    auto& members = out.get_ref<Json::object_t&>();  // keys differ, so none is looked up
    members.reserve(dict->size());
    for (const auto& [key, item] : dict->items()) {
      if (!key.IsString()) Fail("tojson of a dict with a key that is not a string");
      members.emplace_back(std::string(key.AsText()), ToJsonValue(item));
    }
    return out;
  }
  Fail(fmt::format("tojson of a {}", TypeName(value)));
}

}  // namespace evald::jinja

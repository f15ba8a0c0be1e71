// Filters that work on lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "evald/error.h"
#include "jinja/interpreter.h"
#include "python/number.h"
#include "python/unicode.h"

namespace evald::jinja {
namespace {

using Filters = std::map<std::string, FilterFunction, std::less<>>;
using Flavour = Sequence::Flavour;

// Reads "a.b.0" (or an integer) from an item, as jinja2's make_attrgetter does.
class AttributeReader {
 public:
  AttributeReader(Interpreter* in, const Value& attribute, const Value* fallback = nullptr)
      : in_(in), fallback_(fallback) {
    if (attribute.IsInteger()) {
      keys_.push_back(attribute);
      return;
    }
    for (const std::string& part : Split(in->Text(attribute), '.')) {
      const bool number =
          !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
      keys_.push_back(number ? Value(python::ParseInt(part, 10).value_or(0)) : Value(part));
    }
  }

  Value Read(Value item) const {
    for (const Value& key : keys_) {
      item = in_->Item(item, key);
      if (item.IsUndefined() && fallback_ != nullptr) item = *fallback_;
    }
    return item;
  }

 private:
  Interpreter* in_;
  const Value* fallback_;
  std::vector<Value> keys_;
};

Value Folded(const Value& value, bool case_sensitive) {
  return !case_sensitive && value.IsString() ? Value(python::Lower(value.AsText())) : value;
}

// Each item with the key by which it is compared.
std::vector<std::pair<Value, Value>> Keyed(Interpreter* in, const Value& subject,
                                           const Value* attribute, bool case_sensitive) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : in->Items(subject)) {
    Value key = attribute == nullptr ? item : AttributeReader(in, *attribute).Read(item);
    keyed.emplace_back(Folded(key, case_sensitive), std::move(item));
  }
  return keyed;
}

void SortByKey(Interpreter* in, std::vector<std::pair<Value, Value>>* keyed, bool reverse) {
  // Python's reverse sort keeps equal items in their order.
  std::stable_sort(keyed->begin(), keyed->end(), [&](const auto& a, const auto& b) {
    return reverse ? in->Before(b.first, a.first) : in->Before(a.first, b.first);
  });
}

// Counts the tuples of a dict's keys and values.
void SpendPairs(Interpreter* in, const Dict& dict) {
  in->Spend(dict.size() / 4);
  in->SpendBytes(dict.size() * (kSequenceItemBytes + 2 * sizeof(Value)));
}

// Counts a list within a list.
void SpendList(Interpreter* in, uint64_t items) {
  in->Spend(1);
  in->SpendBytes(kSequenceItemBytes + items * sizeof(Value));
}

const Value* GivenAttribute(const BoundArgs& bound, size_t i) {
  return bound.Has(i) && !bound.At(i).IsNone() ? &bound.At(i) : nullptr;
}

Value Sort(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "sort", args, {"reverse", "case_sensitive", "attribute"}, 0);
  const Value* attribute = GivenAttribute(bound, 2);
  if (attribute != nullptr && attribute->IsString() &&
      attribute->AsText().find(',') != std::string_view::npos) {
    in->Fail("sort by several attributes is not supported");
  }
  auto keyed = Keyed(in, subject, attribute, bound.Flag(1, false));
  SortByKey(in, &keyed, bound.Flag(0, false));
  std::vector<Value> items;
  for (auto& pair : keyed) items.push_back(std::move(pair.second));
  return Value::List(std::move(items));
}

template <bool kMax>
Value Extreme(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, kMax ? "max" : "min", args, {"case_sensitive", "attribute"}, 0);
  const auto keyed = Keyed(in, subject, GivenAttribute(bound, 1), bound.Flag(0, false));
  if (keyed.empty()) return Value::Undef("there is no item in an empty list");
  size_t best = 0;
  for (size_t i = 1; i < keyed.size(); ++i) {
    const Value& now = keyed[i].first;
    const Value& held = keyed[best].first;
    if (kMax ? in->Before(held, now) : in->Before(now, held)) best = i;
  }
  return keyed[best].second;
}

Value Unique(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "unique", args, {"case_sensitive", "attribute"}, 0);
  std::set<std::string> seen;
  std::vector<Value> items;
  for (auto& [key, item] : Keyed(in, subject, GivenAttribute(bound, 1), bound.Flag(0, false))) {
    if (seen.insert(HashKey(key)).second) items.push_back(std::move(item));
  }
  return Value::Seq(Flavour::kGenerator, std::move(items));
}

Value GroupBy(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = bound.Flag(2, false);
  const Value* fallback = bound.Has(1) && !bound.At(1).IsNone() ? &bound.At(1) : nullptr;
  const AttributeReader reader(in, bound.At(0), fallback);
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : in->Items(subject)) {
    keyed.emplace_back(Folded(reader.Read(item), case_sensitive), item);
  }
  SortByKey(in, &keyed, false);
  std::vector<Value> groups;
  for (size_t i = 0; i < keyed.size();) {
    std::vector<Value> members;
    const size_t first = i;
    for (; i < keyed.size() && in->Same(keyed[i].first, keyed[first].first); ++i) {
      members.push_back(keyed[i].second);
    }
    SpendList(in, members.size() + 4);  // the members, and a tuple of them and their key
    const Value key = case_sensitive ? keyed[first].first : reader.Read(members[0]);
    auto group = std::make_shared<Sequence>(*Value::Tuple({key, Value::List(members)}).sequence());
    group->group = true;
    groups.push_back(Value(Value::Storage(std::shared_ptr<const Sequence>(std::move(group)))));
  }
  return Value::List(std::move(groups));
}

Value DictSort(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "dictsort", args, {"case_sensitive", "by", "reverse"}, 0);
  if (subject.dict() == nullptr) in->Fail("dictsort needs a dict");
  const std::string by = bound.Text(1, "key");
  if (by != "key" && by != "value") in->Fail("dictsort: by is key or value");
  SpendPairs(in, *subject.dict());
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : subject.dict()->items()) {
    keyed.emplace_back(Folded(by == "key" ? key : value, bound.Flag(0, false)),
                       Value::Tuple({key, value}));
  }
  SortByKey(in, &keyed, bound.Flag(2, false));
  std::vector<Value> items;
  for (auto& pair : keyed) items.push_back(std::move(pair.second));
  return Value::List(std::move(items));
}

Value Length(Interpreter* in, const Value& subject, const Args&) {
  if (subject.IsString()) {
    return Value(static_cast<int64_t>(python::Decode(subject.AsText()).size()));
  }
  if (const Dict* dict = subject.dict()) return Value(static_cast<int64_t>(dict->size()));
  const Sequence* sequence = subject.sequence();
  if (sequence != nullptr && sequence->flavour != Flavour::kGenerator) {
    return Value(static_cast<int64_t>(sequence->items.size()));
  }
  if (subject.IsUndefined()) return Value(int64_t{0});
  in->Fail(fmt::format("a {} has no length", TypeName(subject)));
}

Value First(Interpreter* in, const Value& subject, const Args&) {
  const std::vector<Value> items = in->Items(subject);
  return items.empty() ? Value::Undef("there is no first item in an empty list") : items.front();
}

Value Last(Interpreter* in, const Value& subject, const Args&) {
  if (subject.sequence() != nullptr && subject.sequence()->flavour == Flavour::kGenerator) {
    in->Fail("last of a generator is not defined");
  }
  const std::vector<Value> items = in->Items(subject);
  return items.empty() ? Value::Undef("there is no last item in an empty list") : items.back();
}

Value Join(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "join", args, {"d", "attribute"}, 0);
  const std::string separator = bound.Has(0) ? in->Text(bound.At(0)) : "";
  const Value* attribute = GivenAttribute(bound, 1);
  std::string out;
  bool first = true;
  for (const Value& item : in->Items(subject)) {
    if (!first) out += separator;
    first = false;
    out += in->Text(attribute == nullptr ? item : AttributeReader(in, *attribute).Read(item));
    CheckSize(out.size());
  }
  in->SpendBytes(out.size());
  return Value(std::move(out));
}

Value ListFilter(Interpreter* in, const Value& subject, const Args&) {
  return Value::List(in->Items(subject));
}

Value Reverse(Interpreter* in, const Value& subject, const Args&) {
  std::vector<Value> items = in->Items(subject);
  std::reverse(items.begin(), items.end());
  if (!subject.IsString()) return Value::Seq(Flavour::kGenerator, std::move(items));
  std::string text;
  for (const Value& item : items) text += item.AsText();
  return Value(std::move(text));
}

Value Sum(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "sum", args, {"attribute", "start"}, 0);
  const Value* attribute = GivenAttribute(bound, 0);
  Value total = bound.Or(1, Value(int64_t{0}));
  for (const Value& item : in->Items(subject)) {
    total = in->Binary("+", total,
                       attribute == nullptr ? item : AttributeReader(in, *attribute).Read(item));
  }
  return total;
}

Value ItemsFilter(Interpreter* in, const Value& subject, const Args&) {
  if (subject.IsUndefined()) return Value::Seq(Flavour::kGenerator, {});
  if (subject.dict() == nullptr) in->Fail("items needs a dict");
  SpendPairs(in, *subject.dict());
  std::vector<Value> items;
  for (const auto& [key, value] : subject.dict()->items()) {
    items.push_back(Value::Tuple({key, value}));
  }
  return Value::Seq(Flavour::kGenerator, std::move(items));
}

Value Attr(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "attr", args, {"name"}, 1);
  if (subject.dict() != nullptr && subject.dict()->Find(bound.At(0)) != nullptr) {
    return Value::Undef("the filter attr does not read the items of a dict");
  }
  return in->Attribute(subject, bound.Text(0, ""));
}

Value Batch(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "batch", args, {"linecount", "fill_with"}, 1);
  const int64_t size = bound.Int(0, 0);
  if (size < 1) in->Fail("batch: the size is not at least 1");
  std::vector<Value> batches;
  std::vector<Value> batch;
  for (Value& item : in->Items(subject)) {
    if (static_cast<int64_t>(batch.size()) == size) {
      SpendList(in, batch.size());
      batches.push_back(Value::List(std::move(batch)));
      batch.clear();
    }
    batch.push_back(std::move(item));
  }
  if (!batch.empty()) {
    const bool fills = bound.Has(1) && !bound.At(1).IsNone();
    if (fills) CheckSize(static_cast<uint64_t>(size), sizeof(Value));
    SpendList(in, fills ? static_cast<uint64_t>(size) : batch.size());
    while (fills && static_cast<int64_t>(batch.size()) < size) batch.push_back(bound.At(1));
    batches.push_back(Value::List(std::move(batch)));
  }
  return Value::Seq(Flavour::kGenerator, std::move(batches));
}

Value Slice(Interpreter* in, const Value& subject, const Args& args) {
  const BoundArgs bound(in, "slice", args, {"slices", "fill_with"}, 1);
  const std::vector<Value> items = in->Items(subject);
  const int64_t slices = bound.Int(0, 0);
  if (slices < 1 || slices > 1'000'000) in->Fail("slice: the number of slices is out of range");
  const auto length = static_cast<int64_t>(items.size());
  const int64_t per_slice = length / slices;
  const int64_t longer = length % slices;
  std::vector<Value> out;
  int64_t offset = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t start = offset + i * per_slice;
    if (i < longer) ++offset;
    const int64_t end = offset + (i + 1) * per_slice;
    SpendList(in, static_cast<uint64_t>(end - start) + 1);
    std::vector<Value> slice(items.begin() + start, items.begin() + end);
    if (bound.Has(1) && !bound.At(1).IsNone() && i >= longer) slice.push_back(bound.At(1));
    out.push_back(Value::List(std::move(slice)));
  }
  return Value::Seq(Flavour::kGenerator, std::move(out));
}

Value Map(Interpreter* in, const Value& subject, const Args& args) {
  std::vector<Value> out;
  if (args.positional.empty()) {
    const BoundArgs bound(in, "map", args, {"attribute", "default"}, 1);
    const Value* fallback = bound.Has(1) ? &bound.At(1) : nullptr;
    const AttributeReader reader(in, bound.At(0), fallback);
    for (const Value& item : in->Items(subject)) out.push_back(reader.Read(item));
  } else {
    Args rest = args;
    const std::string name = in->Text(rest.positional.front());
    rest.positional.erase(rest.positional.begin());
    for (const Value& item : in->Items(subject)) out.push_back(in->Filter(name, item, rest));
  }
  in->SpendBytes(out.size() * sizeof(Value));
  return Value::Seq(Flavour::kGenerator, std::move(out));
}

Value SelectOrReject(Interpreter* in, const Value& subject, const Args& args, bool select,
                     bool by_attribute) {
  Args rest = args;
  const auto shift = [&]() {
    Value first = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return first;
  };
  Value attribute;
  if (by_attribute) {
    if (rest.positional.empty()) in->Fail("selectattr and rejectattr need an attribute");
    attribute = shift();
  }
  const std::string test = rest.positional.empty() ? "" : in->Text(shift());
  std::vector<Value> out;
  for (Value& item : in->Items(subject)) {
    const Value value = by_attribute ? AttributeReader(in, attribute).Read(item) : item;
    const bool holds = test.empty() ? in->Truth(value) : in->Test(test, value, rest);
    if (holds == select) out.push_back(std::move(item));
  }
  return Value::Seq(Flavour::kGenerator, std::move(out));
}

template <bool kSelect, bool kByAttribute>
Value Select(Interpreter* in, const Value& subject, const Args& args) {
  return SelectOrReject(in, subject, args, kSelect, kByAttribute);
}

const Filters& SequenceFilters() {
  static const Filters kFilters = {
      {"sort", Sort},
      {"max", Extreme<true>},
      {"min", Extreme<false>},
      {"unique", Unique},
      {"groupby", GroupBy},
      {"dictsort", DictSort},
      {"length", Length},
      {"count", Length},
      {"first", First},
      {"last", Last},
      {"join", Join},
      {"list", ListFilter},
      {"reverse", Reverse},
      {"sum", Sum},
      {"items", ItemsFilter},
      {"attr", Attr},
      {"batch", Batch},
      {"slice", Slice},
      {"map", Map},
      {"select", Select<true, false>},
      {"reject", Select<false, false>},
      {"selectattr", Select<true, true>},
      {"rejectattr", Select<false, true>},
  };
  return kFilters;
}

}  // namespace

FilterFunction FindSequenceFilter(std::string_view name) {
  const auto found = SequenceFilters().find(name);
  return found == SequenceFilters().end() ? nullptr : found->second;
}

}  // namespace evald::jinja

#include "datasets/column_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "datasets/ujson.h"
#include "evald/error.h"

namespace evald {
namespace {

using Kind = ColumnType::Kind;

constexpr int64_t kExactIntegersMax = int64_t{1} << 53;

const char* NameOf(Kind kind) {
  static const char* const kNames[] = {"nulls",  "booleans", "integers",
                                       "floats", "text",     "dates",
                                       "lists",  "mappings", "values of several types"};
  return kNames[static_cast<int>(kind)];
}

Kind KindOf(const Json& value, const TypingRules& rules) {
  switch (value.type()) {
    case Json::value_t::boolean:
      return Kind::kBoolean;
    case Json::value_t::number_integer:
      return Kind::kInteger;
    case Json::value_t::number_unsigned:
      return rules.as_loader && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)
                 ? Kind::kFloat
                 : Kind::kInteger;
    case Json::value_t::number_float:
      return Kind::kFloat;
    case Json::value_t::string:
      return rules.as_loader && ParseDate(value.get_ref<const std::string&>()) ? Kind::kMoment
                                                                               : Kind::kText;
    case Json::value_t::array:
      return Kind::kList;
    case Json::value_t::object:
      return Kind::kStruct;
    default:
      return Kind::kNull;
  }
}

bool IsScalarPair(Kind a, Kind b, Kind one, Kind other) {
  return (a == one && b == other) || (a == other && b == one);
}

void BecomeAny(ColumnType* type) {
  *type = ColumnType{};
  type->kind = Kind::kAny;
}

void Widen(const Json& value, const TypingRules& rules, ColumnType* type);

void WidenFields(const Json& object, const TypingRules& rules, ColumnType* type) {
  for (const auto& item : object.items()) {
    Widen(item.value(), rules, type->FindOrAdd(item.key()));
  }
}

bool HasOtherKeys(const Json& object, const ColumnType& type) {
  if (object.size() != type.names.size()) return true;
  const auto& members = object.get_ref<const Json::object_t&>();
  return std::any_of(members.begin(), members.end(),
                     [&](const auto& member) { return type.Find(member.first) == nullptr; });
}

void Widen(const Json& value, const TypingRules& rules, ColumnType* type) {
  if (value.is_null() || type->kind == Kind::kAny) return;
  const Kind kind = KindOf(value, rules);
  const bool first = type->kind == Kind::kNull;
  if (first) {
    type->kind = kind;
    if (kind == Kind::kList) type->parts.emplace_back();
  } else if (IsScalarPair(type->kind, kind, Kind::kInteger, Kind::kFloat)) {
    type->kind = Kind::kFloat;
  } else if (IsScalarPair(type->kind, kind, Kind::kMoment, Kind::kText)) {
    type->kind = Kind::kText;
  } else if (type->kind != kind) {
    return BecomeAny(type);
  }
  if (kind == Kind::kList) {
    for (const Json& item : value) {
      type->holds_nulls = type->holds_nulls || item.is_null();
      type->begins_in_null =
          type->begins_in_null || (item.is_null() && type->parts[0].kind == Kind::kNull);
      Widen(item, rules, &type->parts[0]);
    }
  } else if (kind == Kind::kStruct) {
    if (rules.structs_vary && (value.empty() || (!first && HasOtherKeys(value, *type))))
      return BecomeAny(type);
    WidenFields(value, rules, type);
  }
}

// The conversions that Arrow makes, and this too.
bool Casts(Kind from, Kind to) {
  switch (to) {
    case Kind::kInteger:
      return from == Kind::kBoolean || from == Kind::kFloat;
    case Kind::kFloat:
      return from == Kind::kInteger;
    case Kind::kText:
      return from == Kind::kInteger || from == Kind::kBoolean || from == Kind::kMoment ||
             from == Kind::kFloat;
    default:
      return false;
  }
}

[[noreturn]] void RefuseValue(const Json& value, Kind to, const ColumnPath& column) {
  throw Error(ErrorKind::kInput,
              fmt::format("the column '{}' holds {} in the rows that decide its type; found {}",
                          column.Text(), NameOf(to),
                          value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60)),
              "give the column one type in all rows and files of the dataset");
}

Json CastToText(const Json& value, Kind from, const ColumnPath& column) {
  switch (from) {
    case Kind::kInteger:
      return value.dump();
    case Kind::kBoolean:
      return value.get<bool>() ? "true" : "false";
    case Kind::kMoment:
      return ParseDate(value.get_ref<const std::string&>()).value_or(python::Moment{}).Str();
    default: {  // a float; exponents can be written in several ways
      const double number = value.get<double>();
      if (number != 0 && (std::fabs(number) < 1e-3 || std::fabs(number) > 1e9))
        RefuseValue(value, Kind::kText, column);
      return fmt::format("{}", number);
    }
  }
}

Json CastNumber(const Json& value, Kind from, Kind to, const CastRules& rules,
                const ColumnPath& column) {
  if (from == Kind::kBoolean) return static_cast<int64_t>(value.get<bool>());
  if (to == Kind::kFloat) {
    const bool exact =
        from != Kind::kInteger || std::abs(value.get<int64_t>()) <= kExactIntegersMax;
    if (!exact) RefuseValue(value, to, column);
    const auto number = value.get<double>();
    if (rules.ten_decimals && value.is_number_float())
      return std::strtod(UjsonText(number).c_str(), nullptr);
    return number;
  }
  if (!value.is_number_float()) return value;
  const auto number = value.get<double>();
  if (std::floor(number) != number || std::fabs(number) > static_cast<double>(kExactIntegersMax)) {
    RefuseValue(value, to, column);
  }
  return static_cast<int64_t>(number);
}

// The number that ujson reads from its own text.
Json PassedThroughUjson(Json value) {
  if (value.is_number_float()) return UjsonNumber(UjsonText(value.get<double>()));
  if (value.is_structured()) {
    for (Json& item : value) item = PassedThroughUjson(std::move(item));
  }
  return value;
}

/// Casts the fields of an object, in the order of the type `to`. Neither look-ups nor additions
/// walk through all keys.
void CastFields(Json* object, const ColumnType& from, const ColumnType& to, const CastRules& rules,
                const ColumnPath& column, Json::object_t* out) {
  std::vector<Json*> given(to.names.size(), nullptr);
  for (auto& [name, value] : object->get_ref<Json::object_t&>()) {
    if (const auto place = to.places.find(name); place != to.places.end()) {
      given[place->second] = &value;
    }
  }
  out->reserve(to.names.size());
  for (size_t i = 0; i < to.names.size(); ++i) {
    const std::string& name = to.names[i];
    Json value;
    if (given[i] != nullptr) {
      value = Cast(std::move(*given[i]), *from.Find(name), to.parts[i], rules, {&column, &name});
    }
    out->emplace_back(name, std::move(value));
  }
}

Json CastToAny(Json value) {
  if (!value.is_string()) return PassedThroughUjson(std::move(value));
  if (auto read = UjsonScalar(value.get_ref<const std::string&>())) return *std::move(read);
  return value;
}

}  // namespace

const ColumnType* ColumnType::Find(std::string_view name) const {
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &parts[found->second];
}

ColumnType* ColumnType::FindOrAdd(const std::string& name, Kind fresh) {
  const auto [found, added] = places.try_emplace(name, names.size());
  if (added) {
    names.push_back(name);
    parts.emplace_back().kind = fresh;
  }
  return &parts[found->second];
}

std::string ColumnPath::Text() const {
  if (name == nullptr) return "";
  const std::string before = outer == nullptr ? "" : outer->Text();
  return before.empty() ? *name : before + "." + *name;
}

void WidenForRow(const Json& row, const TypingRules& rules, ColumnType* table) {
  table->kind = Kind::kStruct;
  WidenFields(row, rules, table);
}

bool HoldsAny(const ColumnType& type) {
  return type.kind == Kind::kAny || std::any_of(type.parts.begin(), type.parts.end(), HoldsAny);
}

bool IsAlike(const ColumnType& type, const ColumnType& decided) {
  if (decided.kind == Kind::kAny) return true;
  if (type.kind != decided.kind || type.names != decided.names ||
      type.parts.size() != decided.parts.size())
    return false;
  return std::equal(type.parts.begin(), type.parts.end(), decided.parts.begin(), IsAlike);
}

std::string FindList(const ColumnType& type, bool (*holds)(const ColumnType& list),
                     const ColumnPath& column) {
  if (type.kind == Kind::kList)
    return holds(type) ? column.Text() : FindList(type.parts[0], holds, column);
  for (size_t i = 0; i < type.names.size(); ++i) {
    if (std::string found = FindList(type.parts[i], holds, {&column, &type.names[i]});
        !found.empty())
      return found;
  }
  return "";
}

std::string WhyNotCast(const ColumnType& from, const ColumnType& to, const ColumnPath& column) {
  if (from.kind == Kind::kNull || to.kind == Kind::kAny) return "";
  if (from.kind != to.kind) {
    if (Casts(from.kind, to.kind)) return "";
    return fmt::format("the column '{}' holds {} here, and {} in the rows that decide its type",
                       column.Text(), NameOf(from.kind), NameOf(to.kind));
  }
  if (from.kind == Kind::kList) return WhyNotCast(from.parts[0], to.parts[0], column);
  for (size_t i = 0; i < from.names.size(); ++i) {
    const ColumnPath inside{&column, &from.names[i]};
    const ColumnType* field = to.Find(from.names[i]);
    if (field == nullptr)
      return fmt::format("the column '{}' is not in the rows that decide the columns",
                         inside.Text());
    if (std::string why = WhyNotCast(from.parts[i], *field, inside); !why.empty()) return why;
  }
  return "";
}

Json Cast(Json value, const ColumnType& from, const ColumnType& to, const CastRules& rules,
          const ColumnPath& column) {
  if (value.is_null()) return value;
  switch (to.kind) {
    case Kind::kAny:
      return rules.as_loader ? CastToAny(std::move(value)) : value;
    case Kind::kInteger:
    case Kind::kFloat:
      return CastNumber(value, from.kind, to.kind, rules, column);
    case Kind::kText:
      return from.kind == Kind::kText ? std::move(value) : CastToText(value, from.kind, column);
    case Kind::kMoment:
      return python::MomentToJson(
          ParseDate(value.get_ref<const std::string&>()).value_or(python::Moment{}));
    case Kind::kList:
      for (Json& item : value)
        item = Cast(std::move(item), from.parts[0], to.parts[0], rules, column);
      return value;
    case Kind::kStruct: {
      Json out = Json::object();
      CastFields(&value, from, to, rules, column, &out.get_ref<Json::object_t&>());
      return out;
    }
    default:
      return value;
  }
}

namespace {

// The number of two digits at `at`; nothing if it is above `max`.
std::optional<int> TwoDigits(std::string_view text, size_t at, int max) {
  if (at + 2 > text.size() || text[at] < '0' || text[at] > '9' || text[at + 1] < '0' ||
      text[at + 1] > '9') {
    return std::nullopt;
  }
  const int number = (text[at] - '0') * 10 + (text[at + 1] - '0');
  return number <= max ? std::optional<int>(number) : std::nullopt;
}

// Cuts a zone from the end of the time and returns its seconds; nothing if it is broken.
std::optional<int64_t> TakeZone(std::string_view* text) {
  const size_t size = text->size();
  const auto is_sign = [&](size_t behind) {
    return (*text)[size - behind] == '+' || (*text)[size - behind] == '-';
  };
  if (text->back() == 'Z') {
    text->remove_suffix(1);
    return 0;
  }
  const size_t length = is_sign(3)                               ? 3
                        : is_sign(5)                             ? 5
                        : is_sign(6) && (*text)[size - 3] == ':' ? 6
                                                                 : 0;
  if (length == 0) return 0;
  const auto hours = TwoDigits(*text, size - length + 1, 23);
  const auto minutes = length == 3 ? std::optional<int>(0) : TwoDigits(*text, size - 2, 59);
  if (!hours || !minutes) return std::nullopt;
  const int64_t seconds = *hours * 3600 + *minutes * 60;
  const bool behind = (*text)[size - length] == '-';
  text->remove_suffix(length);
  return behind ? -seconds : seconds;
}

std::optional<int64_t> DaysOf(std::string_view text) {
  const auto century = TwoDigits(text, 0, 99);
  const auto year = TwoDigits(text, 2, 99);
  const auto month = TwoDigits(text, 5, 12);
  const auto day = TwoDigits(text, 8, 31);
  if (!century || !year || !month || !day || text[4] != '-' || text[7] != '-') return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*century * 100 + *year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *century * 100 + *year == 0) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

}  // namespace

std::optional<python::Moment> ParseDate(std::string_view text) {
  constexpr int64_t kDaySeconds = 86'400;
  if (text.size() < 10) return std::nullopt;
  const auto days = DaysOf(text);
  if (!days) return std::nullopt;
  if (text.size() == 10) return python::Moment{*days * kDaySeconds};
  if (text[10] != ' ' && text[10] != 'T') return std::nullopt;
  const auto zone = TakeZone(&text);
  if (!zone || (text.size() != 13 && text.size() != 16 && text.size() != 19)) return std::nullopt;
  const auto hour = TwoDigits(text, 11, 23);
  const auto minute = text.size() < 16 ? std::optional<int>(0) : TwoDigits(text, 14, 59);
  const auto second = text.size() < 19 ? std::optional<int>(0) : TwoDigits(text, 17, 59);
  const bool colons =
      (text.size() < 16 || text[13] == ':') && (text.size() < 19 || text[16] == ':');
  if (!hour || !minute || !second || !colons) return std::nullopt;
  return python::Moment{*days * kDaySeconds + *hour * 3600 + *minute * 60 + *second - *zone};
}

}  // namespace evald

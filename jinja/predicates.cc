// The tests of templates: {{ x is odd }}.
#include <fmt/format.h>

#include <map>

#include "jinja/interpreter.h"
#include "python/unicode.h"

namespace evald::jinja {
namespace {

int64_t Integer(Interpreter* in, const Value& value) {
  if (value.IsUndefined()) in->Stop(value.undefined()->message);
  if (!value.IsInteger()) in->Fail(fmt::format("a {} is not an integer", TypeName(value)));
  return value.AsInt();
}

const Value& One(Interpreter* in, const Args& args) {
  if (args.positional.size() != 1) in->Fail("the test needs one argument");
  return args.positional[0];
}

bool IsCallable(const Value& value) { return value.callable() != nullptr; }

bool IsIterable(const Value& value) {
  return value.IsString() || value.sequence() != nullptr || value.dict() != nullptr ||
         value.IsUndefined() || value.loop() != nullptr;
}

bool IsSequence(const Value& value) {
  return value.IsString() || value.IsIndexable() || value.dict() != nullptr || value.IsUndefined();
}

bool IsCase(Interpreter* in, const Value& value, bool upper) {
  return in->Truth(CallMethod(in, Value(in->Text(value)), upper ? "isupper" : "islower", Args{}));
}

bool IsSame(const Value& a, const Value& b) {
  if (a.storage().index() != b.storage().index()) return false;
  if (a.sequence() != nullptr) return a.sequence() == b.sequence();
  if (a.dict() != nullptr) return a.dict() == b.dict();
  return Equals(a, b);
}

using Tests = std::map<std::string, TestFunction, std::less<>>;

#define EVALD_TEST(body)                                       \
  [](Interpreter* in, const Value& v, const Args& a) -> bool { \
    (void)in;                                                  \
    (void)v;                                                   \
    (void)a;                                                   \
    return body;                                               \
  }

const Tests& AllTests() {
  static const TestFunction kEq = EVALD_TEST(in->Same(v, One(in, a)));
  static const TestFunction kNe = EVALD_TEST(!in->Same(v, One(in, a)));
  static const TestFunction kLt = EVALD_TEST(in->Before(v, One(in, a)));
  static const TestFunction kLe = EVALD_TEST(!in->Before(One(in, a), v));
  static const TestFunction kGt = EVALD_TEST(in->Before(One(in, a), v));
  static const TestFunction kGe = EVALD_TEST(!in->Before(v, One(in, a)));
  static const Tests kTests = {
      {"defined", EVALD_TEST(!v.IsUndefined())},
      {"undefined", EVALD_TEST(v.IsUndefined())},
      {"none", EVALD_TEST(v.IsNone())},
      {"string", EVALD_TEST(v.IsString())},
      {"mapping", EVALD_TEST(v.dict() != nullptr)},
      {"number", EVALD_TEST(v.IsNumber())},
      {"integer", EVALD_TEST(v.Get<int64_t>() != nullptr)},
      {"float", EVALD_TEST(v.Get<double>() != nullptr)},
      {"boolean", EVALD_TEST(v.Get<bool>() != nullptr)},
      {"true", EVALD_TEST(v.Get<bool>() != nullptr && v.AsInt() == 1)},
      {"false", EVALD_TEST(v.Get<bool>() != nullptr && v.AsInt() == 0)},
      {"callable", EVALD_TEST(IsCallable(v))},
      {"iterable", EVALD_TEST(IsIterable(v))},
      {"sequence", EVALD_TEST(IsSequence(v))},
      {"odd", EVALD_TEST((Integer(in, v) & 1) == 1)},
      {"escaped", EVALD_TEST(v.IsString() && v.text()->markup)},
      {"even", EVALD_TEST((Integer(in, v) & 1) == 0)},
      {"divisibleby",
       [](Interpreter* in, const Value& v, const Args& a) -> bool {
         return Equals(in->Binary("%", Value(Integer(in, v)), One(in, a)), Value(int64_t{0}));
       }},
      {"in", EVALD_TEST(in->Contains(One(in, a), v))},
      {"sameas", EVALD_TEST(IsSame(v, One(in, a)))},
      {"upper", EVALD_TEST(IsCase(in, v, true))},
      {"lower", EVALD_TEST(IsCase(in, v, false))},
      {"filter",
       [](Interpreter* in, const Value& v, const Args&) -> bool {
         const std::string name = in->Text(v);
         return FindTextFilter(name) != nullptr || FindSequenceFilter(name) != nullptr;
       }},
      {"test",
       [](Interpreter* in, const Value& v, const Args&) -> bool {
         return FindTest(in->Text(v)) != nullptr;
       }},
      {"==", kEq},
      {"eq", kEq},
      {"equalto", kEq},
      {"!=", kNe},
      {"ne", kNe},
      {"<", kLt},
      {"lt", kLt},
      {"lessthan", kLt},
      {"<=", kLe},
      {"le", kLe},
      {">", kGt},
      {"gt", kGt},
      {"greaterthan", kGt},
      {">=", kGe},
      {"ge", kGe},
  };
  return kTests;
}

#undef EVALD_TEST

}  // namespace

TestFunction FindTest(std::string_view name) {
  const auto found = AllTests().find(name);
  return found == AllTests().end() ? nullptr : found->second;
}

std::vector<std::string> TestNames() {
  std::vector<std::string> names;
  for (const auto& test : AllTests()) names.push_back(test.first);
  return names;
}

}  // namespace evald::jinja

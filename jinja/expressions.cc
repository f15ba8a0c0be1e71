// The part of the interpreter that evaluates expressions.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/find_text.h"
#include "base/text.h"
#include "evald/error.h"
#include "jinja/arithmetic.h"
#include "jinja/interpreter.h"
#include "python/unicode.h"

namespace evald::jinja {
namespace {

std::optional<Arithmetic> ArithmeticOf(std::string_view op) {
  if (op == "+") return Arithmetic::kAdd;
  if (op == "-") return Arithmetic::kSub;
  if (op == "*") return Arithmetic::kMul;
  if (op == "/") return Arithmetic::kDiv;
  if (op == "//") return Arithmetic::kFloorDiv;
  if (op == "%") return Arithmetic::kMod;
  if (op == "**") return Arithmetic::kPow;
  return std::nullopt;
}

bool IsMarkup(const Value& value) { return value.IsString() && value.text()->markup; }

// The positions that a Python slice selects from a sequence of `size` items.
std::vector<size_t> SlicePositions(int64_t size, std::optional<int64_t> from,
                                   std::optional<int64_t> to, int64_t step) {
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? size - 1 : size;
  const auto clip = [&](std::optional<int64_t> bound, int64_t fallback) {
    if (!bound) return fallback;
    const int64_t at = *bound < 0 ? (*bound < -size ? low : *bound + size) : *bound;
    return std::clamp(at, low, high);
  };
  std::vector<size_t> positions;
  int64_t at = clip(from, step < 0 ? high : low);
  const int64_t end = clip(to, step < 0 ? low : high);
  while (step < 0 ? at > end : at < end) {
    positions.push_back(static_cast<size_t>(at));
    if (step > 0 ? step > size : -step > size) break;
    at += step;
  }
  return positions;
}

Value RepeatSequence(const Sequence& sequence, int64_t count) {
  std::vector<Value> items;
  CheckSize(static_cast<uint64_t>(std::max<int64_t>(count, 0)),
            sequence.items.size() * sizeof(Value));
  for (int64_t i = 0; i < count; ++i) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return Value::Seq(sequence.flavour, std::move(items));
}

}  // namespace

bool Interpreter::IsStrict(const Value& value) const {
  return options_.strict_undefined && value.IsUndefined() && !value.undefined()->lenient;
}

std::string Interpreter::Text(const Value& value) {
  if (IsStrict(value)) Stop(value.undefined()->message);
  Spend(value.Weight());
  return Str(value);
}

bool Interpreter::Truth(const Value& value) {
  if (IsStrict(value)) Stop(value.undefined()->message);
  return Truthy(value);
}

bool Interpreter::Same(const Value& a, const Value& b) {
  if (IsStrict(a)) Stop(a.undefined()->message);
  if (IsStrict(b)) Stop(b.undefined()->message);
  Spend(std::min(a.Weight(), b.Weight()));
  return Equals(a, b);
}

bool Interpreter::Before(const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (value->IsUndefined()) Stop(value->undefined()->message);
  }
  Spend(std::min(a.Weight(), b.Weight()));
  return Less(a, b);
}

bool Interpreter::Contains(const Value& haystack, const Value& needle) {
  if (haystack.IsString()) {
    if (!needle.IsString()) {
      Fail(fmt::format("'in' looks for a string in a string, not for a {}", TypeName(needle)));
    }
    Spend(haystack.Weight());
    return FindText(haystack.AsText(), needle.AsText()) != std::string_view::npos;
  }
  if (const Dict* dict = haystack.dict()) {
    Spend(1 + needle.Weight() + dict->size() / 16);
    return dict->Find(needle) != nullptr;
  }
  const std::vector<Value> items = Items(haystack);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return Same(item, needle); });
}

std::vector<Value> Interpreter::Items(const Value& value) {
  if (value.IsUndefined()) {
    if (IsStrict(value)) Stop(value.undefined()->message);
    return {};
  }
  std::vector<Value> items;
  if (const Sequence* sequence = value.sequence()) {
    if (sequence->flavour == Sequence::Flavour::kGenerator) {
      if (sequence->consumed) return {};
      sequence->consumed = true;
    }
    items = sequence->items;
  } else if (const Dict* dict = value.dict()) {
    for (const auto& item : dict->items()) items.push_back(item.first);
  } else if (value.IsString()) {
    Spend(value.AsText().size());
    SpendBytes(value.AsText().size() * (kTextItemBytes - sizeof(Value)));
    for (char32_t c : python::Decode(value.AsText())) {
      std::string text;
      python::AppendUtf8(c, &text);
      items.emplace_back(std::move(text));
    }
  } else {
    Fail(fmt::format("a {} cannot be iterated over", TypeName(value)));
  }
  SpendBytes(items.size() * sizeof(Value));
  Spend(items.size() / 4 + 1);
  return items;
}

Value Interpreter::Binary(std::string_view op, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (value->IsUndefined()) Stop(value->undefined()->message);
    if (IsMarkup(*value)) Fail(fmt::format("'{}' on a safe string is not supported", op));
  }
  if (op == "%" && a.IsString()) return FormatPercent(this, a, b);
  if (a.IsNumber() && b.IsNumber()) return Compute(*ArithmeticOf(op), a, b);
  if (op == "+" && a.IsString() && b.IsString()) {
    SpendBytes(a.AsText().size() + b.AsText().size());
    return Value(std::string(a.AsText()) + std::string(b.AsText()));
  }
  const bool sequences = a.IsIndexable() && b.IsIndexable() &&
                         a.sequence()->flavour == b.sequence()->flavour &&
                         a.sequence()->flavour != Sequence::Flavour::kRange;
  if (op == "+" && sequences) {
    std::vector<Value> items = a.sequence()->items;
    items.insert(items.end(), b.sequence()->items.begin(), b.sequence()->items.end());
    SpendBytes(items.size() * sizeof(Value));
    Spend(items.size() / 8);
    return Value::Seq(a.sequence()->flavour, std::move(items));
  }
  if (op == "*" && b.IsInteger() && a.IsString()) {
    const uint64_t count = static_cast<uint64_t>(std::max<int64_t>(b.AsInt(), 0));
    CheckSize(count, a.AsText().size());
    std::string text;
    if (!a.AsText().empty()) {
      for (uint64_t i = 0; i < count; ++i) text += a.AsText();
    }
    SpendBytes(text.size());
    return Value(std::move(text));
  }
  if (op == "*" && b.IsInteger() && a.IsIndexable() &&
      a.sequence()->flavour != Sequence::Flavour::kRange) {
    Value repeated = RepeatSequence(*a.sequence(), a.sequence()->items.empty() ? 0 : b.AsInt());
    SpendBytes(repeated.sequence()->items.size() * sizeof(Value));
    return repeated;
  }
  if (op == "*" && a.IsInteger() && (b.IsString() || b.IsIndexable())) return Binary(op, b, a);
  Fail(fmt::format("'{}' between {} and {} is not defined", op, TypeName(a), TypeName(b)));
}

Value Interpreter::Attribute(const Value& subject, const std::string& name) {
  if (subject.IsUndefined()) Stop(subject.undefined()->message);
  if (name.rfind("__", 0) == 0) Fail(fmt::format("the attribute '{}' is not supported", name));
  if (const Namespace* name_space = subject.name_space()) {
    for (const auto& [key, value] : name_space->attributes) {
      if (key == name) return value;
    }
  } else if (const std::shared_ptr<LoopState> loop = subject.loop()) {
    const auto size = static_cast<int64_t>(loop->items.size());
    const auto index = static_cast<int64_t>(loop->index);
    if (name == "index") return Value(index + 1);
    if (name == "index0") return Value(index);
    if (name == "revindex") return Value(size - index);
    if (name == "revindex0") return Value(size - index - 1);
    if (name == "first") return Value(index == 0);
    if (name == "last") return Value(index + 1 == size);
    if (name == "length") return Value(size);
    if (name == "depth") return Value(int64_t{1});  // greater only in a recursive loop
    if (name == "depth0") return Value(int64_t{0});
    if (name == "previtem") {
      return index > 0 ? loop->items[loop->index - 1] : Value::Undef("there is no previous item");
    }
    if (name == "nextitem") {
      return index + 1 < size ? loop->items[loop->index + 1]
                              : Value::Undef("there is no next item");
    }
  } else if (const Sequence* sequence = subject.sequence();
             sequence != nullptr && sequence->group && (name == "grouper" || name == "list")) {
    return sequence->items[name == "list" ? 1 : 0];
  }
  if (subject.moment() != nullptr)
    Fail(fmt::format("the attribute '{}' of a date is not supported", name));
  if (HasMethod(this, subject, name)) {
    auto method = std::make_shared<Callable>();
    method->name = name;
    method->call = [subject, name](Interpreter& in, const Args& args) {
      return CallMethod(&in, subject, name, args);
    };
    return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(method))));
  }
  if (const Dict* dict = subject.dict()) {
    Spend(1 + name.size() / 16);
    if (const Value* found = dict->Find(name)) return *found;
  }
  return Value::Undef(fmt::format("a {} has no attribute '{}'", TypeName(subject), name));
}

Value Interpreter::Item(const Value& subject, const Value& key) {
  if (subject.IsUndefined()) Stop(subject.undefined()->message);
  if (key.IsUndefined()) Stop(key.undefined()->message);
  if (const Dict* dict = subject.dict()) {
    Spend(1 + key.Weight());
    if (key.IsString() || key.IsNumber() || key.IsNone() || key.sequence() != nullptr) {
      if (const Value* found = dict->Find(key)) return *found;
    }
  } else if (key.IsInteger() && (subject.IsIndexable() || subject.IsString())) {
    const std::u32string text =
        subject.IsString() ? python::Decode(subject.AsText()) : std::u32string();
    Spend(text.size() / 16);
    const auto size =
        static_cast<int64_t>(subject.IsString() ? text.size() : subject.sequence()->items.size());
    const int64_t at = key.AsInt() < 0 ? key.AsInt() + size : key.AsInt();
    if (at >= 0 && at < size) {
      if (!subject.IsString()) return subject.sequence()->items[static_cast<size_t>(at)];
      return Value(python::Encode(text.substr(static_cast<size_t>(at), 1)));
    }
    return Value::Undef(
        fmt::format("a {} of {} items has no item {}", TypeName(subject), size, key.AsInt()));
  }
  if (key.IsString()) return Attribute(subject, std::string(key.AsText()));
  return Value::Undef(fmt::format("a {} has no item {}", TypeName(subject), Repr(key)));
}

Value Interpreter::Call(const Value& callee, const Args& args) {
  if (callee.IsUndefined()) Stop(callee.undefined()->message);
  if (callee.loop() != nullptr) Fail("a recursive loop is not supported");
  const Callable* callable = callee.callable();
  if (callable == nullptr) Fail(fmt::format("a {} cannot be called", TypeName(callee)));
  return callable->call(*this, args);
}

Value Interpreter::Filter(const std::string& name, const Value& subject, const Args& args) {
  FilterFunction filter = FindTextFilter(name);
  if (filter == nullptr) filter = FindSequenceFilter(name);
  const bool absent = filter == nullptr || (name == "regex_replace" && !options_.regex_replace);
  if (absent) {
    Fail(fmt::format("the filter '{}' is not known{}", name, Suggestion(name, FilterNames())));
  }
  const bool takes_undefined = name == "default" || name == "d";
  if (IsStrict(subject) && !takes_undefined) {
    Stop(subject.undefined()->message);
  }
  Spend(subject.Weight());
  for (const Value& argument : args.positional) Spend(argument.Weight());
  return filter(this, subject, args);
}

bool Interpreter::Test(const std::string& name, const Value& subject, const Args& args) {
  const TestFunction test = FindTest(name);
  if (test == nullptr) {
    Fail(fmt::format("the test '{}' is not known{}", name, Suggestion(name, TestNames())));
  }
  if (IsStrict(subject) && (name == "iterable" || name == "sequence")) {
    Stop(subject.undefined()->message);
  }
  return test(this, subject, args);
}

Value Interpreter::Evaluate(const Expr& expr) {
  Spend(1);
  line_ = expr.line;
  return EvaluateNode(expr);
}

Value Interpreter::EvaluateNode(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kName:
      return Lookup(expr.name);
    case ExprKind::kList:
    case ExprKind::kTuple: {
      std::vector<Value> items;
      for (const ExprPtr& part : expr.parts) items.push_back(Evaluate(*part));
      SpendBytes(items.size() * sizeof(Value));
      return expr.kind == ExprKind::kList ? Value::List(std::move(items))
                                          : Value::Tuple(std::move(items));
    }
    case ExprKind::kDict:
      return EvaluateDict(expr);
    case ExprKind::kAttribute:
      return Attribute(Evaluate(*expr.parts[0]), expr.name);
    case ExprKind::kItem: {
      const Value subject = Evaluate(*expr.parts[0]);
      return Item(subject, Evaluate(*expr.parts[1]));
    }
    case ExprKind::kSlice:
      return EvaluateSlice(expr);
    case ExprKind::kCall:
      return EvaluateCall(expr, nullptr);
    case ExprKind::kFilter:
      return EvaluateFilter(expr, nullptr);
    case ExprKind::kTest: {
      const Value subject = Evaluate(*expr.parts[0]);
      return Value(Test(expr.name, subject, Arguments(expr)));
    }
    case ExprKind::kConditional:
      if (Truth(Evaluate(*expr.parts[1]))) return Evaluate(*expr.parts[0]);
      if (expr.parts[2] != nullptr) return Evaluate(*expr.parts[2]);
      return Value::Undef("the inline if was false and has no else", true);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value left = Evaluate(*expr.parts[0]);
      return Truth(left) == (expr.kind == ExprKind::kOr) ? left : Evaluate(*expr.parts[1]);
    }
    case ExprKind::kNot:
      return Value(!Truth(Evaluate(*expr.parts[0])));
    case ExprKind::kNegate:
    case ExprKind::kPlus: {
      const Value value = Evaluate(*expr.parts[0]);
      if (value.IsUndefined()) Stop(value.undefined()->message);
      if (!value.IsNumber()) Fail(fmt::format("a {} has no sign", TypeName(value)));
      if (expr.kind == ExprKind::kNegate) return Negate(value);
      return value.IsInteger() ? Value(value.AsInt()) : value;
    }
    case ExprKind::kConcat:
      return EvaluateConcat(expr);
    case ExprKind::kBinary: {
      const Value left = Evaluate(*expr.parts[0]);
      const Value right = Evaluate(*expr.parts[1]);
      line_ = expr.line;
      return Binary(expr.name, left, right);
    }
    case ExprKind::kCompare:
      return EvaluateCompare(expr);
    case ExprKind::kNamespaceRef:
      break;
  }
  Fail("an attribute of a namespace cannot be read here");
}

Value Interpreter::EvaluateDict(const Expr& expr) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i < expr.parts.size(); i += 2) {
    Value key = Evaluate(*expr.parts[i]);
    if (key.IsUndefined()) Stop(key.undefined()->message);
    dict->Set(std::move(key), Evaluate(*expr.parts[i + 1]));
  }
  SpendBytes(dict->size() * 2 * sizeof(Value));
  return Value(Value::Storage(std::shared_ptr<const Dict>(std::move(dict))));
}

Value Interpreter::EvaluateConcat(const Expr& expr) {
  std::string text;
  for (const ExprPtr& part : expr.parts) {
    const Value value = Evaluate(*part);
    if (IsMarkup(value)) Fail("'~' on a safe string is not supported");
    text += Text(value);
    CheckSize(text.size());
  }
  SpendBytes(text.size());
  return Value(std::move(text));
}

Value Interpreter::EvaluateCompare(const Expr& expr) {
  Value left = Evaluate(*expr.parts[0]);
  for (size_t i = 0; i < expr.names.size(); ++i) {
    Value right = Evaluate(*expr.parts[i + 1]);
    const std::string& op = expr.names[i];
    bool holds = false;
    if (op == "==" || op == "!=") {
      holds = Same(left, right) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = Contains(right, left) == (op == "in");
    } else if (op == "<" || op == ">=") {
      holds = Before(left, right) == (op == "<");
      if (op == ">=" && left.IsNumber() && right.IsNumber()) {
        holds = Before(right, left) || Same(left, right);
      }
    } else {
      holds = Before(right, left) == (op == ">");
      if (op == "<=" && left.IsNumber() && right.IsNumber()) {
        holds = Before(left, right) || Same(left, right);
      }
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::EvaluateSlice(const Expr& expr) {
  const Value subject = Evaluate(*expr.parts[0]);
  if (subject.IsUndefined()) Stop(subject.undefined()->message);
  const auto bound = [&](size_t i) -> std::optional<int64_t> {
    if (expr.parts[i] == nullptr) return std::nullopt;
    const Value value = Evaluate(*expr.parts[i]);
    if (value.IsNone()) return std::nullopt;
    if (!value.IsInteger()) Fail(fmt::format("a {} is no bound of a slice", TypeName(value)));
    return value.AsInt();
  };
  const std::optional<int64_t> from = bound(1);
  const std::optional<int64_t> to = bound(2);
  const int64_t step = std::clamp<int64_t>(bound(3).value_or(1), -INT32_MAX, INT32_MAX);
  if (step == 0) Fail("a slice has a step of 0");
  if (subject.IsString()) {
    Spend(subject.AsText().size() / 8);
    const std::u32string text = python::Decode(subject.AsText());
    std::u32string out;
    for (size_t at : SlicePositions(static_cast<int64_t>(text.size()), from, to, step)) {
      out.push_back(text[at]);
    }
    SpendBytes(out.size());
    return Value(python::Encode(out));
  }
  if (!subject.IsIndexable()) Fail(fmt::format("a {} cannot be sliced", TypeName(subject)));
  const auto& items = subject.sequence()->items;
  Spend(items.size() / 8);
  std::vector<Value> out;
  for (size_t at : SlicePositions(static_cast<int64_t>(items.size()), from, to, step)) {
    out.push_back(items[at]);
  }
  SpendBytes(out.size() * sizeof(Value));
  return Value::Seq(subject.sequence()->flavour, std::move(out));
}

Args Interpreter::Arguments(const Expr& expr) {
  Args args;
  for (size_t i = 1; i < expr.parts.size(); ++i) {
    args.positional.push_back(Evaluate(*expr.parts[i]));
  }
  for (const auto& [name, value] : expr.named) args.named.emplace_back(name, Evaluate(*value));
  if (expr.star != nullptr) {
    for (Value& item : Items(Evaluate(*expr.star))) args.positional.push_back(std::move(item));
  }
  if (expr.star_named != nullptr) {
    const Value named = Evaluate(*expr.star_named);
    if (named.dict() == nullptr) Fail("'**' needs a dict");
    for (const auto& [key, value] : named.dict()->items()) {
      args.named.emplace_back(Text(key), value);
    }
  }
  line_ = expr.line;
  return args;
}

Value Interpreter::EvaluateCall(const Expr& expr, const Value* caller) {
  const Expr& callee = *expr.parts[0];
  if (callee.kind == ExprKind::kAttribute) {
    const Value subject = Evaluate(*callee.parts[0]);
    const bool plain = subject.IsString() || subject.dict() != nullptr ||
                       subject.sequence() != nullptr || subject.loop() != nullptr;
    if (plain && HasMethod(this, subject, callee.name)) {
      Args args = Arguments(expr);
      if (caller != nullptr) args.named.emplace_back("caller", *caller);
      Spend(subject.Weight());
      for (const Value& argument : args.positional) Spend(argument.Weight());
      return CallMethod(this, subject, callee.name, args);
    }
    const Value function = Attribute(subject, callee.name);
    Args args = Arguments(expr);
    if (caller != nullptr) args.named.emplace_back("caller", *caller);
    return Call(function, args);
  }
  const Value function = Evaluate(callee);
  Args args = Arguments(expr);
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  return Call(function, args);
}

Value Interpreter::EvaluateFilter(const Expr& expr, const Value* block) {
  const Expr* inner = expr.parts[0].get();
  const Value subject = inner == nullptr ? *block
                        : block != nullptr && inner->kind == ExprKind::kFilter
                            ? EvaluateFilter(*inner, block)
                            : Evaluate(*inner);
  const Args args = Arguments(expr);
  return Filter(expr.name, subject, args);
}

}  // namespace evald::jinja

#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jinja/options.h"
#include "jinja/syntax.h"
#include "jinja/value.h"

namespace evald::jinja {

/// A scope: names and the scope around it.
struct Frame {
  const Value* Find(const std::string& name) const {
    for (const auto& held : names) {
      if (held.first == name) return &held.second;
    }
    return nullptr;
  }
  void Set(const std::string& name, Value value) {
    for (auto& held : names) {
      if (held.first == name) {
        held.second = std::move(value);
        return;
      }
    }
    names.emplace_back(name, std::move(value));
  }

  std::vector<std::pair<std::string, Value>> names;  ///< few, so the search goes from front to back
  std::shared_ptr<Frame> parent;
};

/// Renders one template once. Errors are Error(kInput) "line <n>: ...".
class Interpreter {
 public:
  Interpreter(const TemplateOptions& options, const Json& variables);
  ~Interpreter();

  std::string Run(const Body& body);

  // ---- for filters, tests and methods

  /// Whether reading `value` is an error: it is undefined, and the environment is strict.
  bool IsStrict(const Value& value) const;
  /// str(value); throws for a strict undefined value.
  std::string Text(const Value& value);
  /// bool(value); throws for a strict undefined value.
  bool Truth(const Value& value);
  /// list(value): items of a list, keys of a dict, code points of a string.
  std::vector<Value> Items(const Value& value);
  bool Same(const Value& a, const Value& b);
  bool Before(const Value& a, const Value& b);
  /// `needle in haystack`.
  bool Contains(const Value& haystack, const Value& needle);
  Value Attribute(const Value& subject, const std::string& name);
  Value Item(const Value& subject, const Value& key);
  Value Binary(std::string_view op, const Value& a, const Value& b);
  Value Call(const Value& callee, const Args& args);
  Value Filter(const std::string& name, const Value& subject, const Args& args);
  bool Test(const std::string& name, const Value& subject, const Args& args);
  /// Counts work. Throws if a limit is exceeded.
  void Spend(uint64_t steps);
  void SpendBytes(uint64_t bytes);
  [[noreturn]] void Fail(const std::string& message) const;
  /// Throws the message as a TemplateStopped.
  [[noreturn]] void Stop(const std::string& message) const;
  const TemplateOptions& options() const { return options_; }

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class FrameScope;

  Flow Run(const Body& body, std::string* out);
  Flow RunStatement(const Stmt& stmt, std::string* out);
  Flow RunIf(const Stmt& stmt, std::string* out);
  Flow RunFor(const Stmt& stmt, std::string* out);
  Flow RunIterations(const Stmt& stmt, std::vector<Value> items, std::string* out);
  Flow RunWith(const Stmt& stmt, std::string* out);
  void RunSetBlock(const Stmt& stmt);
  void RunCall(const Stmt& stmt, std::string* out);
  /// The text of `body` in a scope of its own.
  std::string Capture(const Body& body);
  void Write(std::string_view text, std::string* out);

  Value Evaluate(const Expr& expr);
  Value EvaluateNode(const Expr& expr);
  Value EvaluateSlice(const Expr& expr);
  Value EvaluateCall(const Expr& expr, const Value* caller);
  Value EvaluateFilter(const Expr& expr, const Value* block);
  Value EvaluateCompare(const Expr& expr);
  Value EvaluateConcat(const Expr& expr);
  Value EvaluateDict(const Expr& expr);
  Args Arguments(const Expr& expr);
  Value Lookup(const std::string& name);
  void Assign(const Expr& target, const Value& value);
  void SetNamespace(const Expr& target, const Value& value);
  Value MakeMacro(const Stmt& stmt);
  Value RunMacro(const Stmt& stmt, const std::shared_ptr<Frame>& scope, const Args& args);
  void BindMacro(const Stmt& stmt, const Args& args);
  /// Throws if `value` holds a namespace or a loop, which could then hold itself.
  void CheckPlain(const Value& value);

  const TemplateOptions& options_;
  const Json& variables_;
  std::unordered_map<std::string, Value> converted_;
  std::shared_ptr<Frame> frame_;
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
  uint64_t output_bytes_ = 0;
  int line_ = 1;
  int calls_ = 0;
};

/// The arguments of a call by parameter name. Parameters from number `positional_only` on may be
/// given by name.
class BoundArgs {
 public:
  /// `names`: the parameters in order. Throws Error(kInput) if there are too many arguments, if an
  /// argument is unknown or given twice, or if one of the first `required` is absent.
  BoundArgs(Interpreter* in, const std::string& function, const Args& args,
            std::vector<std::string> names, size_t required, size_t positional_only = 0);

  bool Has(size_t i) const { return values_[i] != nullptr; }
  /// None counts as given.
  const Value& At(size_t i) const { return *values_[i]; }
  std::string Text(size_t i, const std::string& fallback) const;
  int64_t Int(size_t i, int64_t fallback) const;
  bool Flag(size_t i, bool fallback) const;
  Value Or(size_t i, const Value& fallback) const { return Has(i) ? At(i) : fallback; }

 private:
  Interpreter* in_;
  std::string function_;
  std::vector<std::string> names_;
  std::vector<const Value*> values_;
};

/// A method of `subject`, called by name. Throws Error(kInput) for an unknown method.
Value CallMethod(Interpreter* in, const Value& subject, const std::string& name, const Args& args);
/// Whether Python's type of `subject` has this method. Throws if the method exists but is not
/// supported.
bool HasMethod(Interpreter* in, const Value& subject, const std::string& name);

/// The filter or test of that name, or null.
using FilterFunction = Value (*)(Interpreter* in, const Value& subject, const Args& args);
FilterFunction FindTextFilter(std::string_view name);
FilterFunction FindSequenceFilter(std::string_view name);
std::vector<std::string> FilterNames();
using TestFunction = bool (*)(Interpreter* in, const Value& subject, const Args& args);
TestFunction FindTest(std::string_view name);
std::vector<std::string> TestNames();
/// A function that every template knows: range, dict, namespace, ...; null if there is none.
const Value* FindGlobal(const TemplateOptions& options, std::string_view name);

/// format % value, and format.format(*args, **named), as Python's str does.
Value FormatPercent(Interpreter* in, const Value& format, const Value& value);
Value FormatBraces(Interpreter* in, std::string_view format, const Args& args);

}  // namespace evald::jinja

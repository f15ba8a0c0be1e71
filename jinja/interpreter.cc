#include "jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"

namespace evald::jinja {
namespace {

constexpr int kCallsMax = 60;

}  // namespace

// Opens a scope inside the current one, or inside `parent`.
class Interpreter::FrameScope {
 public:
  explicit FrameScope(Interpreter* in) : FrameScope(in, in->frame_) {}
  FrameScope(Interpreter* in, std::shared_ptr<Frame> parent) : in_(in), before_(in->frame_) {
    in_->frame_ = std::make_shared<Frame>();
    in_->frame_->parent = std::move(parent);
  }
  ~FrameScope() { in_->frame_ = before_; }

 private:
  Interpreter* in_;
  std::shared_ptr<Frame> before_;
};

Interpreter::Interpreter(const TemplateOptions& options, const Json& variables)
    : options_(options), variables_(variables), frame_(std::make_shared<Frame>()) {}
Interpreter::~Interpreter() = default;

void Interpreter::Fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("line {}: {}", line_, message));
}

void Interpreter::Stop(const std::string& message) const {
  throw TemplateStopped(fmt::format("line {}: {}", line_, message));
}

void Interpreter::Spend(uint64_t steps) {
  steps_ += steps;
  if (steps_ > options_.limits.steps_max) {
    Fail(fmt::format("the template takes more than {} steps", options_.limits.steps_max));
  }
}

void Interpreter::SpendBytes(uint64_t bytes) {
  bytes_ += bytes;
  if (bytes_ > options_.limits.bytes_max) {
    Fail(fmt::format("the template makes more than {} bytes of values", options_.limits.bytes_max));
  }
}

std::string Interpreter::Run(const Body& body) {
  std::string out;
  try {
    Run(body, &out);
  } catch (Error& error) {
    // Values do not know their line.
    if (error.message().rfind("line ", 0) != 0) error.AddContext(fmt::format("line {}", line_));
    throw;
  }
  return out;
}

void Interpreter::Write(std::string_view text, std::string* out) {
  output_bytes_ += text.size();
  if (output_bytes_ > options_.limits.output_bytes_max) {
    Fail(fmt::format("the template prints more than {} bytes", options_.limits.output_bytes_max));
  }
  out->append(text);
}

std::string Interpreter::Capture(const Body& body) {
  std::string out;
  Run(body, &out);
  return out;
}

Interpreter::Flow Interpreter::Run(const Body& body, std::string* out) {
  for (const auto& stmt : body) {
    const Flow flow = RunStatement(*stmt, out);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::RunStatement(const Stmt& stmt, std::string* out) {
  Spend(1);
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::kData:
      Write(stmt.text, out);
      return Flow::kNormal;
    case StmtKind::kOutput:
      for (const ExprPtr& expr : stmt.exprs) Write(Text(Evaluate(*expr)), out);
      return Flow::kNormal;
    case StmtKind::kSet:
      Assign(*stmt.target, Evaluate(*stmt.exprs[0]));
      return Flow::kNormal;
    case StmtKind::kSetBlock:
      RunSetBlock(stmt);
      return Flow::kNormal;
    case StmtKind::kIf:
      return RunIf(stmt, out);
    case StmtKind::kFor:
      return RunFor(stmt, out);
    case StmtKind::kWith:
      return RunWith(stmt, out);
    case StmtKind::kMacro:
      frame_->Set(stmt.name, MakeMacro(stmt));
      return Flow::kNormal;
    case StmtKind::kCall:
      RunCall(stmt, out);
      return Flow::kNormal;
    case StmtKind::kFilter: {
      const FrameScope scope(this);
      const Value text(Capture(stmt.body));
      Write(Text(EvaluateFilter(*stmt.filter, &text)), out);
      return Flow::kNormal;
    }
    case StmtKind::kScope: {
      const FrameScope scope(this);
      return Run(stmt.body, out);
    }
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::RunIf(const Stmt& stmt, std::string* out) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (Truth(Evaluate(*stmt.exprs[i]))) return Run(stmt.bodies[i], out);
  }
  return Run(stmt.otherwise, out);
}

Interpreter::Flow Interpreter::RunFor(const Stmt& stmt, std::string* out) {
  std::vector<Value> items = Items(Evaluate(*stmt.exprs[0]));
  if (stmt.test != nullptr) {
    std::vector<Value> kept;
    for (Value& item : items) {
      const FrameScope scope(this);
      Assign(*stmt.target, item);
      if (Truth(Evaluate(*stmt.test))) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    const FrameScope scope(this);
    return Run(stmt.otherwise, out);
  }
  return RunIterations(stmt, std::move(items), out);
}

Interpreter::Flow Interpreter::RunIterations(const Stmt& stmt, std::vector<Value> items,
                                             std::string* out) {
  auto state = std::make_shared<LoopState>();
  state->items = std::move(items);
  const Value loop{Value::Storage(state)};
  for (; state->index < state->items.size(); ++state->index) {
    const FrameScope scope(this);
    frame_->Set("loop", loop);
    Assign(*stmt.target, state->items[state->index]);
    Spend(1);
    if (Run(stmt.body, out) == Flow::kBreak) break;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::RunWith(const Stmt& stmt, std::string* out) {
  std::vector<Value> values;
  for (const ExprPtr& expr : stmt.exprs) values.push_back(Evaluate(*expr));
  const FrameScope scope(this);
  for (size_t i = 0; i < values.size(); ++i) Assign(*stmt.targets[i], values[i]);
  return Run(stmt.body, out);
}

void Interpreter::RunSetBlock(const Stmt& stmt) {
  Value text;
  {
    const FrameScope scope(this);
    text = Value(Capture(stmt.body));
    if (stmt.filter != nullptr) text = EvaluateFilter(*stmt.filter, &text);
  }
  Assign(*stmt.target, text);
}

void Interpreter::RunCall(const Stmt& stmt, std::string* out) {
  const Value caller = MakeMacro(stmt);
  Write(Text(EvaluateCall(*stmt.exprs[0], &caller)), out);
}

void Interpreter::Assign(const Expr& target, const Value& value) {
  if (target.kind == ExprKind::kName) {
    Spend(frame_->names.size() / 8);
    frame_->Set(target.name, value);
    return;
  }
  if (target.kind == ExprKind::kNamespaceRef) {
    SetNamespace(target, value);
    return;
  }
  const std::vector<Value> items = Items(value);
  if (items.size() != target.parts.size()) {
    Fail(fmt::format("{} values cannot be unpacked into {} names", items.size(),
                     target.parts.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.parts[i], items[i]);
}

void Interpreter::SetNamespace(const Expr& target, const Value& value) {
  const Value held = Lookup(target.name);
  Namespace* name_space = held.name_space();
  if (name_space == nullptr) {
    Fail(fmt::format("cannot assign an attribute of '{}', which is not a namespace", target.name));
  }
  CheckPlain(value);
  for (auto& [name, current] : name_space->attributes) {
    if (name == target.attribute) {
      current = value;
      return;
    }
  }
  name_space->attributes.emplace_back(target.attribute, value);
}

void Interpreter::CheckPlain(const Value& value) {
  Spend(1);
  if (value.name_space() != nullptr || value.loop() != nullptr) {
    Fail("a namespace or a loop cannot be kept in a namespace");
  }
  if (const Sequence* sequence = value.sequence()) {
    for (const Value& item : sequence->items) CheckPlain(item);
  } else if (const Dict* dict = value.dict()) {
    for (const auto& item : dict->items()) CheckPlain(item.second);
  }
}

Value Interpreter::Lookup(const std::string& name) {
  for (const Frame* frame = frame_.get(); frame != nullptr; frame = frame->parent.get()) {
    Spend(1 + frame->names.size() / 8);
    if (const Value* found = frame->Find(name)) return *found;
  }
  const auto cached = converted_.find(name);
  if (cached != converted_.end()) return cached->second;
  const auto variable = variables_.find(name);
  if (variable != variables_.end()) {
    return converted_.emplace(name, Value::FromJson(*variable)).first->second;
  }
  if (const Value* global = FindGlobal(options_, name)) return *global;
  for (const char* not_served : {"cycler", "joiner", "lipsum", "self"}) {
    if (name == not_served) Fail(fmt::format("'{}' of jinja2 is not served", name));
  }
  return Value::Undef(fmt::format("'{}' is undefined", name));
}

Value Interpreter::MakeMacro(const Stmt& stmt) {
  // The macro is an entry of a scope, so it must not own that scope.
  const std::weak_ptr<Frame> scope = frame_;
  auto callable = std::make_shared<Callable>();
  callable->name = stmt.name;
  callable->call = [&stmt, scope](Interpreter& in, const Args& args) {
    const std::shared_ptr<Frame> held = scope.lock();
    if (held == nullptr) in.Fail(fmt::format("the scope of macro '{}' has ended", stmt.name));
    return in.RunMacro(stmt, held, args);
  };
  return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(callable))));
}

Value Interpreter::RunMacro(const Stmt& stmt, const std::shared_ptr<Frame>& scope,
                            const Args& args) {
  if (calls_ >= kCallsMax) Fail(fmt::format("macros call each other more than {} deep", kCallsMax));
  const int line = line_;
  ++calls_;
  std::string out;
  {
    const FrameScope frame(this, scope);
    BindMacro(stmt, args);
    out = Capture(stmt.body);
  }
  --calls_;
  line_ = line;
  SpendBytes(out.size());
  return Value(std::move(out));
}

void Interpreter::BindMacro(const Stmt& stmt, const Args& args) {
  const auto& parameters = stmt.parameters;
  std::vector<Value> rest;
  auto named = std::make_shared<Dict>();
  std::vector<bool> given(parameters.size(), false);
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (i < parameters.size()) {
      frame_->Set(parameters[i], args.positional[i]);
      given[i] = true;
    } else if (stmt.takes_varargs) {
      rest.push_back(args.positional[i]);
    } else {
      Fail(
          fmt::format("macro '{}' takes not more than {} arguments", stmt.name, parameters.size()));
    }
  }
  for (const auto& [name, value] : args.named) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    const auto at = static_cast<size_t>(found - parameters.begin());
    if (found != parameters.end()) {
      if (given[at]) Fail(fmt::format("macro '{}' got two values for '{}'", stmt.name, name));
      given[at] = true;
      frame_->Set(name, value);
    } else if (name == "caller" && stmt.takes_caller) {
      frame_->Set(name, value);
    } else if (stmt.takes_kwargs) {
      named->Set(Value(name), value);
    } else {
      Fail(fmt::format("macro '{}' takes no argument '{}'", stmt.name, name));
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    const size_t first = parameters.size() - stmt.defaults.size();
    frame_->Set(parameters[i], i >= first ? Evaluate(*stmt.defaults[i - first])
                                          : Value::Undef(fmt::format(
                                                "parameter '{}' was not provided", parameters[i])));
  }
  if (stmt.takes_varargs) frame_->Set("varargs", Value::Tuple(std::move(rest)));
  if (stmt.takes_kwargs) {
    frame_->Set("kwargs", Value(Value::Storage(std::shared_ptr<const Dict>(std::move(named)))));
  }
  if (stmt.takes_caller && frame_->Find("caller") == nullptr) {
    frame_->Set("caller", Value::Undef("No caller defined"));
  }
}

}  // namespace evald::jinja

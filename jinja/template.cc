#include "jinja/template.h"

#include <set>

#include "evald/error.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

namespace evald::jinja {

struct TemplateTree {
  Body body;
};

namespace {

// Collects the names that the template reads, and those that it sets anywhere.
class NameCollector {
 public:
  void Visit(const Body& body) {
    for (const auto& stmt : body) Visit(*stmt);
  }

  std::vector<std::string> Free() const {
    static const std::set<std::string> kKnown = {
        "range",           "dict",        "loop", "namespace", "caller", "varargs", "kwargs",
        "raise_exception", "strftime_now"};
    std::vector<std::string> names;
    for (const std::string& name : read_) {
      if (set_.count(name) == 0 && kKnown.count(name) == 0) names.push_back(name);
    }
    return names;
  }

 private:
  void Visit(const Stmt& stmt) {
    if (!stmt.name.empty()) set_.insert(stmt.name);
    set_.insert(stmt.parameters.begin(), stmt.parameters.end());
    Target(stmt.target.get());
    for (const ExprPtr& target : stmt.targets) Target(target.get());
    for (const auto* list : {&stmt.exprs, &stmt.defaults}) {
      for (const ExprPtr& expr : *list) Visit(expr.get());
    }
    Visit(stmt.test.get());
    Visit(stmt.filter.get());
    for (const Body& body : stmt.bodies) Visit(body);
    Visit(stmt.body);
    Visit(stmt.otherwise);
  }

  void Target(const Expr* target) {
    if (target == nullptr) return;
    if (target->kind == ExprKind::kName) set_.insert(target->name);
    for (const ExprPtr& part : target->parts) Target(part.get());
  }

  void Visit(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kName) read_.insert(expr->name);
    for (const ExprPtr& part : expr->parts) Visit(part.get());
    for (const auto& named : expr->named) Visit(named.second.get());
    Visit(expr->star.get());
    Visit(expr->star_named.get());
  }

  std::set<std::string> read_;
  std::set<std::string> set_;
};

}  // namespace

Template::Template(const std::string& source, const TemplateOptions& options, std::string name)
    : options_(options), name_(std::move(name)), tree_(std::make_unique<TemplateTree>()) {
  try {
    tree_->body = ParseTemplate(source, options_);
  } catch (Error& error) {
    error.AddContext(name_);
    throw;
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

std::string Template::Render(const Json& variables) const {
  try {
    return Interpreter(options_, variables).Run(tree_->body);
  } catch (Error& error) {
    error.AddContext(name_);
    throw;
  }
}

std::vector<std::string> Template::FreeNames() const {
  NameCollector collector;
  collector.Visit(tree_->body);
  return collector.Free();
}

}  // namespace evald::jinja

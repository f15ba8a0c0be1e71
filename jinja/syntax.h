#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

// The syntax tree of a template.
namespace evald::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind {
  kConstant,
  kName,
  kNamespaceRef,  ///< ns.attr as the target of a set
  kList,
  kTuple,
  kDict,         ///< parts: key, value, key, value, ...
  kAttribute,    ///< parts[0].name
  kItem,         ///< parts[0][parts[1]]
  kSlice,        ///< parts[0][parts[1]:parts[2]:parts[3]]; an absent bound is null
  kCall,         ///< parts[0](parts[1...], named, *star, **star_named)
  kFilter,       ///< parts[0]|name(parts[1...]); parts[0] is null in a filter block
  kTest,         ///< parts[0] is name(parts[1...])
  kConditional,  ///< parts[0] if parts[1] else parts[2] (may be null)
  kAnd,
  kOr,
  kNot,
  kNegate,
  kPlus,
  kConcat,
  kBinary,   ///< parts[0] name parts[1], name is the operator
  kCompare,  ///< parts[0] names[0] parts[1] names[1] parts[2] ...
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 1;
  int depth = 1;
  std::string name;
  std::string attribute;  ///< kNamespaceRef
  Value constant;
  std::vector<ExprPtr> parts;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star;
  ExprPtr star_named;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class StmtKind {
  kData,      ///< text
  kOutput,    ///< exprs, printed one after another
  kSet,       ///< target = exprs[0]
  kSetBlock,  ///< target = body, through `filter`
  kIf,        ///< tests[i] -> bodies[i]; else `otherwise`
  kFor,       ///< target in exprs[0], filtered by `test`; body, otherwise
  kWith,      ///< targets = exprs, then body
  kMacro,     ///< name, parameters, defaults, body
  kCall,      ///< {% call(parameters) exprs[0] %} body
  kFilter,    ///< body through `filter`
  kScope,     ///< body in a scope of its own ({% generation %})
  kBreak,
  kContinue,
};

struct Stmt {
  StmtKind kind = StmtKind::kData;
  int line = 1;
  std::string text;
  std::string name;
  ExprPtr target;
  std::vector<ExprPtr> targets;
  std::vector<ExprPtr> exprs;
  ExprPtr test;
  ExprPtr filter;
  std::vector<Body> bodies;
  Body body;
  Body otherwise;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  ///< of the last parameters
  /// A macro takes further arguments if its body reads `varargs` or `kwargs`. It takes a caller if
  /// its body reads `caller`.
  bool takes_varargs = false;
  bool takes_kwargs = false;
  bool takes_caller = false;
};

}  // namespace evald::jinja

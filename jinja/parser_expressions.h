#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/lexer.h"
#include "jinja/syntax.h"

namespace evald::jinja {

/// Parses the expressions of one template from its tokens, front to back, with the precedences of
/// jinja2's parser. Throws Error(kInput) "line <n>: ...".
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  /// An expression. Several with commas between them are a tuple. `end_name` ends it too.
  ExprPtr ParseTuple(bool with_conditional = true, std::string_view end_name = "",
                     bool explicit_parentheses = false);
  ExprPtr ParseExpression(bool with_conditional = true);
  /// The target of an assignment: a name, a tuple of targets, or ns.attribute.
  ExprPtr ParseTarget(bool with_namespace, std::string_view end_name = "");
  /// filter|filter ...; null if there is none. `start_inline`: the first filter has no bar.
  ExprPtr ParseFilters(ExprPtr subject, bool start_inline);

  const Token& current() const { return tokens_[at_]; }
  const Token& Peek() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token Next();
  bool IsOperator(std::string_view op) const;
  bool IsName(std::string_view name) const;
  bool SkipOperator(std::string_view op);
  bool SkipName(std::string_view name);
  void ExpectOperator(std::string_view op);
  std::string ExpectName();
  void Expect(TokenKind kind, const char* what);
  [[noreturn]] void Fail(const std::string& message) const;
  [[noreturn]] void FailAt(int line, const std::string& message) const;
  std::string Describe() const;

  /// The number of times that the names `varargs`, `kwargs` and `caller` have been read so far.
  struct SpecialNames {
    int varargs = 0;
    int kwargs = 0;
    int caller = 0;
  };
  const SpecialNames& special_names() const { return special_names_; }

 private:
  struct Nesting;

  ExprPtr Make(ExprKind kind, int line, std::vector<ExprPtr> parts) const;
  ExprPtr ParseConditional();
  ExprPtr ParseOr();
  ExprPtr ParseAnd();
  ExprPtr ParseNot();
  ExprPtr ParseCompare();
  ExprPtr ParseSum();
  ExprPtr ParseConcat();
  ExprPtr ParseProduct();
  ExprPtr ParsePower();
  ExprPtr ParseUnary(bool with_filter);
  ExprPtr ParsePrimary(bool with_namespace);
  ExprPtr ParseNameOrConstant(bool with_namespace);
  ExprPtr ParseNumber();
  ExprPtr ParseList();
  ExprPtr ParseDict();
  ExprPtr ParsePostfix(ExprPtr subject);
  ExprPtr ParseFilterExpression(ExprPtr subject);
  ExprPtr ParseSubscript(ExprPtr subject);
  ExprPtr ParseBrackets(ExprPtr subject, int line);
  ExprPtr ParseSlice(ExprPtr subject, ExprPtr first, int line);
  ExprPtr ParseTest(ExprPtr subject);
  void ParseArguments(Expr* call);
  bool AtTupleEnd(std::string_view end_name) const;
  void CheckTarget(const Expr& target) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  SpecialNames special_names_;
};

}  // namespace evald::jinja

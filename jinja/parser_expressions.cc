#include "jinja/parser_expressions.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "python/number.h"

namespace evald::jinja {
namespace {

constexpr int kNestingMax = 80;
constexpr int kExpressionDepthMax = 300;

template <typename... Parts>
std::vector<ExprPtr> List(Parts... parts) {
  std::vector<ExprPtr> list;
  (list.push_back(std::move(parts)), ...);
  return list;
}

}  // namespace

// Counts how deeply parentheses, operators and arguments are nested.
struct ExpressionParser::Nesting {
  explicit Nesting(ExpressionParser* parser) : parser(parser) {
    if (++parser->nesting_ > kNestingMax) parser->Fail("the expression is nested too deep");
  }
  ~Nesting() { --parser->nesting_; }
  ExpressionParser* parser;
};

void ExpressionParser::FailAt(int line, const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("line {}: {}", line, message));
}

void ExpressionParser::Fail(const std::string& message) const { FailAt(current().line, message); }

std::string ExpressionParser::Describe() const {
  switch (current().kind) {
    case TokenKind::kVariableEnd:
      return "the end of the {{ }}";
    case TokenKind::kBlockEnd:
      return "the end of the {% %}";
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kString:
      return "a string";
    default:
      return "'" + current().text + "'";
  }
}

Token ExpressionParser::Next() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::IsOperator(std::string_view op) const {
  return current().kind == TokenKind::kOperator && current().text == op;
}
bool ExpressionParser::IsName(std::string_view name) const {
  return current().kind == TokenKind::kName && current().text == name;
}
bool ExpressionParser::SkipOperator(std::string_view op) {
  if (!IsOperator(op)) return false;
  Next();
  return true;
}
bool ExpressionParser::SkipName(std::string_view name) {
  if (!IsName(name)) return false;
  Next();
  return true;
}
void ExpressionParser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) Fail(fmt::format("expected '{}', found {}", op, Describe()));
}
std::string ExpressionParser::ExpectName() {
  if (current().kind != TokenKind::kName) Fail("expected a name, found " + Describe());
  return Next().text;
}
void ExpressionParser::Expect(TokenKind kind, const char* what) {
  if (current().kind != kind) Fail(fmt::format("expected {}, found {}", what, Describe()));
  Next();
}

ExprPtr ExpressionParser::Make(ExprKind kind, int line, std::vector<ExprPtr> parts) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  for (const ExprPtr& part : parts) {
    if (part != nullptr) expr->depth = std::max(expr->depth, part->depth + 1);
  }
  if (expr->depth > kExpressionDepthMax) FailAt(line, "the expression is nested too deep");
  expr->parts = std::move(parts);
  return expr;
}

bool ExpressionParser::AtTupleEnd(std::string_view end_name) const {
  return current().kind == TokenKind::kVariableEnd || current().kind == TokenKind::kBlockEnd ||
         IsOperator(")") || (!end_name.empty() && IsName(end_name));
}

ExprPtr ExpressionParser::ParseTuple(bool with_conditional, std::string_view end_name,
                                     bool explicit_parentheses) {
  const int line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) ExpectOperator(",");
    if (AtTupleEnd(end_name)) break;
    items.push_back(ParseExpression(with_conditional));
    if (!IsOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!explicit_parentheses) Fail("expected an expression, found " + Describe());
  }
  return Make(ExprKind::kTuple, line, std::move(items));
}

ExprPtr ExpressionParser::ParseTarget(bool with_namespace, std::string_view end_name) {
  const int line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) ExpectOperator(",");
    if (AtTupleEnd(end_name)) break;
    items.push_back(ParsePrimary(with_namespace));
    if (!IsOperator(",")) break;
    is_tuple = true;
  }
  if (items.empty()) Fail("expected a name, found " + Describe());
  ExprPtr target = is_tuple ? Make(ExprKind::kTuple, line, std::move(items)) : std::move(items[0]);
  CheckTarget(*target);
  return target;
}

void ExpressionParser::CheckTarget(const Expr& target) const {
  if (target.kind == ExprKind::kTuple) {
    for (const ExprPtr& part : target.parts) CheckTarget(*part);
  } else if (target.kind != ExprKind::kName && target.kind != ExprKind::kNamespaceRef) {
    FailAt(target.line, "a value can only be assigned to a name, not to an expression");
  } else if (target.kind == ExprKind::kName && target.name == "loop") {
    FailAt(target.line, "the name 'loop' cannot be assigned to");
  }
}

ExprPtr ExpressionParser::ParseExpression(bool with_conditional) {
  const Nesting nesting(this);
  return with_conditional ? ParseConditional() : ParseOr();
}

ExprPtr ExpressionParser::ParseConditional() {
  const Nesting nesting(this);
  const int line = current().line;
  ExprPtr value = ParseOr();
  while (SkipName("if")) {
    ExprPtr test = ParseOr();
    ExprPtr otherwise = SkipName("else") ? ParseConditional() : nullptr;
    value = Make(ExprKind::kConditional, line,
                 List(std::move(value), std::move(test), std::move(otherwise)));
  }
  return value;
}

ExprPtr ExpressionParser::ParseOr() {
  const int line = current().line;
  ExprPtr left = ParseAnd();
  while (SkipName("or")) left = Make(ExprKind::kOr, line, List(std::move(left), ParseAnd()));
  return left;
}

ExprPtr ExpressionParser::ParseAnd() {
  const int line = current().line;
  ExprPtr left = ParseNot();
  while (SkipName("and")) left = Make(ExprKind::kAnd, line, List(std::move(left), ParseNot()));
  return left;
}

ExprPtr ExpressionParser::ParseNot() {
  const Nesting nesting(this);
  const int line = current().line;
  if (SkipName("not")) return Make(ExprKind::kNot, line, List(ParseNot()));
  return ParseCompare();
}

ExprPtr ExpressionParser::ParseCompare() {
  const int line = current().line;
  std::vector<ExprPtr> parts = List(ParseSum());
  std::vector<std::string> names;
  while (true) {
    const bool compares = IsOperator("==") || IsOperator("!=") || IsOperator("<") ||
                          IsOperator("<=") || IsOperator(">") || IsOperator(">=") || IsName("in");
    if (compares) {
      names.push_back(Next().text);
    } else if (IsName("not") && Peek().kind == TokenKind::kName && Peek().text == "in") {
      Next();
      Next();
      names.emplace_back("not in");
    } else {
      break;
    }
    parts.push_back(ParseSum());
  }
  if (names.empty()) return std::move(parts[0]);
  ExprPtr compare = Make(ExprKind::kCompare, line, std::move(parts));
  compare->names = std::move(names);
  return compare;
}

ExprPtr ExpressionParser::ParseSum() {
  ExprPtr left = ParseConcat();
  while (IsOperator("+") || IsOperator("-")) {
    const Token op = Next();
    left = Make(ExprKind::kBinary, op.line, List(std::move(left), ParseConcat()));
    left->name = op.text;
  }
  return left;
}

ExprPtr ExpressionParser::ParseConcat() {
  const int line = current().line;
  std::vector<ExprPtr> parts = List(ParseProduct());
  while (SkipOperator("~")) parts.push_back(ParseProduct());
  if (parts.size() == 1) return std::move(parts[0]);
  return Make(ExprKind::kConcat, line, std::move(parts));
}

ExprPtr ExpressionParser::ParseProduct() {
  ExprPtr left = ParsePower();
  while (IsOperator("*") || IsOperator("/") || IsOperator("//") || IsOperator("%")) {
    const Token op = Next();
    left = Make(ExprKind::kBinary, op.line, List(std::move(left), ParsePower()));
    left->name = op.text;
  }
  return left;
}

ExprPtr ExpressionParser::ParsePower() {
  ExprPtr left = ParseUnary(true);
  while (IsOperator("**")) {
    const Token op = Next();
    left = Make(ExprKind::kBinary, op.line, List(std::move(left), ParseUnary(true)));
    left->name = op.text;
  }
  return left;
}

ExprPtr ExpressionParser::ParseUnary(bool with_filter) {
  const Nesting nesting(this);
  const int line = current().line;
  ExprPtr value;
  if (SkipOperator("-")) {
    value = Make(ExprKind::kNegate, line, List(ParseUnary(false)));
  } else if (SkipOperator("+")) {
    value = Make(ExprKind::kPlus, line, List(ParseUnary(false)));
  } else {
    value = ParsePrimary(false);
  }
  value = ParsePostfix(std::move(value));
  return with_filter ? ParseFilterExpression(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::ParsePrimary(bool with_namespace) {
  const int line = current().line;
  switch (current().kind) {
    case TokenKind::kName:
      return ParseNameOrConstant(with_namespace);
    case TokenKind::kString: {
      std::string text;
      while (current().kind == TokenKind::kString) text += Next().text;
      ExprPtr constant = Make(ExprKind::kConstant, line, {});
      constant->constant = Value(std::move(text));
      return constant;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return ParseNumber();
    default:
      break;
  }
  if (SkipOperator("(")) {
    const Nesting nesting(this);
    ExprPtr tuple = ParseTuple(true, "", true);
    ExpectOperator(")");
    return tuple;
  }
  if (IsOperator("[")) return ParseList();
  if (IsOperator("{")) return ParseDict();
  Fail("unexpected " + Describe());
}

ExprPtr ExpressionParser::ParseNameOrConstant(bool with_namespace) {
  const Token token = Next();
  ExprPtr expr = Make(ExprKind::kConstant, token.line, {});
  if (token.text == "true" || token.text == "True") {
    expr->constant = Value(true);
  } else if (token.text == "false" || token.text == "False") {
    expr->constant = Value(false);
  } else if (token.text != "none" && token.text != "None") {
    expr->kind = ExprKind::kName;
    expr->name = token.text;
    special_names_.varargs += token.text == "varargs" ? 1 : 0;
    special_names_.kwargs += token.text == "kwargs" ? 1 : 0;
    special_names_.caller += token.text == "caller" ? 1 : 0;
    if (with_namespace && SkipOperator(".")) {
      expr->kind = ExprKind::kNamespaceRef;
      expr->attribute = ExpectName();
    }
  }
  return expr;
}

ExprPtr ExpressionParser::ParseNumber() {
  const Token token = Next();
  ExprPtr expr = Make(ExprKind::kConstant, token.line, {});
  try {
    if (token.kind == TokenKind::kFloat) {
      expr->constant = Value(python::ParseFloat(token.text).value_or(0));
    } else {
      expr->constant = Value(python::ParseInt(token.text, 0).value_or(0));
    }
  } catch (const Error& error) {
    FailAt(token.line, error.message());
  }
  return expr;
}

ExprPtr ExpressionParser::ParseList() {
  const Nesting nesting(this);
  const int line = current().line;
  ExpectOperator("[");
  std::vector<ExprPtr> items;
  while (!IsOperator("]")) {
    if (!items.empty()) ExpectOperator(",");
    if (IsOperator("]")) break;
    items.push_back(ParseExpression());
  }
  ExpectOperator("]");
  return Make(ExprKind::kList, line, std::move(items));
}

ExprPtr ExpressionParser::ParseDict() {
  const Nesting nesting(this);
  const int line = current().line;
  ExpectOperator("{");
  std::vector<ExprPtr> items;
  while (!IsOperator("}")) {
    if (!items.empty()) ExpectOperator(",");
    if (IsOperator("}")) break;
    items.push_back(ParseExpression());
    ExpectOperator(":");
    items.push_back(ParseExpression());
  }
  ExpectOperator("}");
  return Make(ExprKind::kDict, line, std::move(items));
}

ExprPtr ExpressionParser::ParsePostfix(ExprPtr subject) {
  while (true) {
    if (IsOperator(".") || IsOperator("[")) {
      subject = ParseSubscript(std::move(subject));
    } else if (IsOperator("(")) {
      const int line = current().line;
      subject = Make(ExprKind::kCall, line, List(std::move(subject)));
      ParseArguments(subject.get());
    } else {
      return subject;
    }
  }
}

ExprPtr ExpressionParser::ParseFilterExpression(ExprPtr subject) {
  while (true) {
    if (IsOperator("|")) {
      subject = ParseFilters(std::move(subject), false);
    } else if (IsName("is")) {
      subject = ParseTest(std::move(subject));
    } else if (IsOperator("(")) {
      const int line = current().line;
      subject = Make(ExprKind::kCall, line, List(std::move(subject)));
      ParseArguments(subject.get());
    } else {
      return subject;
    }
  }
}

ExprPtr ExpressionParser::ParseSubscript(ExprPtr subject) {
  const int line = current().line;
  if (SkipOperator("[")) return ParseBrackets(std::move(subject), line);
  ExpectOperator(".");
  if (current().kind == TokenKind::kName) {
    ExprPtr attribute = Make(ExprKind::kAttribute, line, List(std::move(subject)));
    attribute->name = Next().text;
    return attribute;
  }
  if (current().kind != TokenKind::kInteger) Fail("expected a name or a number after '.'");
  return Make(ExprKind::kItem, line, List(std::move(subject), ParseNumber()));
}

ExprPtr ExpressionParser::ParseBrackets(ExprPtr subject, int line) {
  const Nesting nesting(this);
  std::vector<ExprPtr> items;
  while (!IsOperator("]")) {
    if (!items.empty()) ExpectOperator(",");
    ExprPtr item = IsOperator(":") ? nullptr : ParseExpression();
    if (IsOperator(":")) {
      if (!items.empty()) Fail("a slice beside other subscripts is not supported");
      ExprPtr slice = ParseSlice(std::move(subject), std::move(item), line);
      ExpectOperator("]");
      return slice;
    }
    items.push_back(std::move(item));
  }
  ExpectOperator("]");
  ExprPtr index =
      items.size() == 1 ? std::move(items[0]) : Make(ExprKind::kTuple, line, std::move(items));
  return Make(ExprKind::kItem, line, List(std::move(subject), std::move(index)));
}

ExprPtr ExpressionParser::ParseSlice(ExprPtr subject, ExprPtr first, int line) {
  ExpectOperator(":");
  ExprPtr last;
  ExprPtr step;
  if (!IsOperator(":") && !IsOperator("]")) last = ParseExpression();
  if (SkipOperator(":") && !IsOperator("]")) step = ParseExpression();
  return Make(ExprKind::kSlice, line,
              List(std::move(subject), std::move(first), std::move(last), std::move(step)));
}

ExprPtr ExpressionParser::ParseFilters(ExprPtr subject, bool start_inline) {
  while (start_inline || IsOperator("|")) {
    if (!start_inline) Next();
    start_inline = false;
    const int line = current().line;
    std::string name = ExpectName();
    while (SkipOperator(".")) name += "." + ExpectName();
    subject = Make(ExprKind::kFilter, line, List(std::move(subject)));
    subject->name = std::move(name);
    if (IsOperator("(")) ParseArguments(subject.get());
  }
  return subject;
}

ExprPtr ExpressionParser::ParseTest(ExprPtr subject) {
  const int line = Next().line;
  const bool negated = SkipName("not");
  ExprPtr test = Make(ExprKind::kTest, line, List(std::move(subject)));
  test->name = ExpectName();
  while (SkipOperator(".")) test->name += "." + ExpectName();
  const TokenKind kind = current().kind;
  const bool takes_one =
      ((kind == TokenKind::kName && !IsName("else") && !IsName("or") && !IsName("and")) ||
       kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
       IsOperator("[") || IsOperator("{"));
  if (IsOperator("(")) {
    ParseArguments(test.get());
  } else if (takes_one) {
    if (IsName("is")) Fail("tests cannot be chained with 'is'");
    ExprPtr argument = ParsePostfix(ParsePrimary(false));
    test->depth = std::max(test->depth, argument->depth + 1);
    test->parts.push_back(std::move(argument));
  }
  return negated ? Make(ExprKind::kNot, line, List(std::move(test))) : std::move(test);
}

void ExpressionParser::ParseArguments(Expr* call) {
  const Nesting nesting(this);
  const int line = current().line;
  ExpectOperator("(");
  const auto ensure = [&](bool holds) {
    if (!holds) FailAt(line, "the arguments of a call are in the wrong order");
  };
  const auto deepen = [call](const ExprPtr& argument) {
    call->depth = std::max(call->depth, argument->depth + 1);
  };
  bool first = true;
  while (!IsOperator(")")) {
    if (!first) ExpectOperator(",");
    if (!first && IsOperator(")")) break;
    first = false;
    if (SkipOperator("*")) {
      ensure(call->star == nullptr && call->star_named == nullptr);
      deepen(call->star = ParseExpression());
    } else if (SkipOperator("**")) {
      ensure(call->star_named == nullptr);
      deepen(call->star_named = ParseExpression());
    } else if (current().kind == TokenKind::kName && Peek().kind == TokenKind::kOperator &&
               Peek().text == "=") {
      ensure(call->star_named == nullptr);
      std::string name = Next().text;
      Next();
      call->named.emplace_back(std::move(name), ParseExpression());
      deepen(call->named.back().second);
    } else {
      ensure(call->star == nullptr && call->star_named == nullptr && call->named.empty());
      call->parts.push_back(ParseExpression());
      deepen(call->parts.back());
    }
  }
  ExpectOperator(")");
  if (call->depth > kExpressionDepthMax) FailAt(line, "the expression is nested too deep");
}

}  // namespace evald::jinja

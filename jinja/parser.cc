#include "jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "base/text.h"
#include "evald/error.h"
#include "jinja/parser_expressions.h"

namespace evald::jinja {
namespace {

constexpr int kBlockNestingMax = 60;

using Names = std::vector<std::string>;

class Parser {
 public:
  Parser(std::vector<Token> tokens, const TemplateOptions& options)
      : in_(std::move(tokens)), options_(options) {}

  Body Run() {
    Body body = ParseUntil({});
    if (in_.current().kind != TokenKind::kEnd) in_.Fail("unexpected " + in_.Describe());
    return body;
  }

 private:
  using StmtPtr = std::unique_ptr<Stmt>;

  static StmtPtr Make(StmtKind kind, int line) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }

  // Statements up to a block whose name is one of `ends`. The current token is then that name.
  Body ParseUntil(const Names& ends) {
    if (++nesting_ > kBlockNestingMax) in_.Fail("blocks are nested too deep");
    Body body;
    while (in_.current().kind != TokenKind::kEnd) {
      const Token token = in_.Next();
      if (token.kind == TokenKind::kData) {
        body.push_back(Make(StmtKind::kData, token.line));
        body.back()->text = token.text;
      } else if (token.kind == TokenKind::kVariableBegin) {
        body.push_back(Make(StmtKind::kOutput, token.line));
        body.back()->exprs.push_back(in_.ParseTuple());
        in_.Expect(TokenKind::kVariableEnd, "the end of the {{ }}");
      } else {
        const bool at_end = in_.current().kind == TokenKind::kName &&
                            std::find(ends.begin(), ends.end(), in_.current().text) != ends.end();
        if (at_end) break;
        body.push_back(ParseStatement(ends));
        in_.Expect(TokenKind::kBlockEnd, "the end of the {% %}");
      }
    }
    --nesting_;
    return body;
  }

  // Of the names that may follow a body, the one that ends the block.
  static const std::string& Closing(const Names& ends) {
    const auto end = std::find_if(ends.begin(), ends.end(),
                                  [](const std::string& name) { return name.starts_with("end"); });
    return end == ends.end() ? ends.back() : *end;
  }

  // The body of a block, from the end of its opening tag up to the name of one of `ends`.
  Body ParseBody(const Names& ends) {
    in_.SkipOperator(":");
    in_.Expect(TokenKind::kBlockEnd, "the end of the {% %}");
    const int line = in_.current().line;
    Body body = ParseUntil(ends);
    if (in_.current().kind == TokenKind::kEnd) {
      in_.FailAt(line, fmt::format("the block is not closed with '{}'", Closing(ends)));
    }
    return body;
  }

  Body ParseWholeBody(const std::string& end) {
    Body body = ParseBody({end});
    in_.Next();
    return body;
  }

  StmtPtr ParseStatement(const Names& ends) {
    const int line = in_.current().line;
    const std::string name = in_.ExpectName();
    if (name == "set") return ParseSet(line);
    if (name == "if") return ParseIf(line);
    if (name == "for") return ParseFor(line);
    if (name == "with") return ParseWith(line);
    if (name == "macro") return ParseMacro(line);
    if (name == "call") return ParseCall(line);
    if (name == "filter") return ParseFilterBlock(line);
    if (name == "print") return ParsePrint(line);
    if (name == "generation" && options_.chat) {
      StmtPtr stmt = Make(StmtKind::kScope, line);
      stmt->body = ParseWholeBody("endgeneration");
      return stmt;
    }
    if ((name == "break" || name == "continue") && options_.loop_controls) {
      if (loops_ == 0) in_.FailAt(line, fmt::format("'{}' outside of a loop", name));
      return Make(name == "break" ? StmtKind::kBreak : StmtKind::kContinue, line);
    }
    static const Names kRefused = {"include", "import", "from",  "extends",
                                   "block",   "do",     "trans", "autoescape"};
    if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end()) {
      in_.FailAt(line, fmt::format("the statement '{}' is not supported", name));
    }
    Names known = {"set", "if", "for", "with", "macro", "call", "filter", "print", "raw"};
    known.insert(known.end(), ends.begin(), ends.end());
    in_.FailAt(line, fmt::format("unknown statement '{}'{}", name, Suggestion(name, known)));
  }

  StmtPtr ParseSet(int line) {
    ExprPtr target = in_.ParseTarget(true);
    if (in_.SkipOperator("=")) {
      StmtPtr stmt = Make(StmtKind::kSet, line);
      stmt->target = std::move(target);
      stmt->exprs.push_back(in_.ParseTuple());
      return stmt;
    }
    StmtPtr stmt = Make(StmtKind::kSetBlock, line);
    stmt->target = std::move(target);
    stmt->filter = in_.ParseFilters(nullptr, false);
    stmt->body = ParseWholeBody("endset");
    return stmt;
  }

  StmtPtr ParseIf(int line) {
    StmtPtr stmt = Make(StmtKind::kIf, line);
    while (true) {
      stmt->exprs.push_back(in_.ParseTuple(false));
      stmt->bodies.push_back(ParseBody({"elif", "else", "endif"}));
      const std::string end = in_.Next().text;
      if (end == "elif") continue;
      if (end == "else") stmt->otherwise = ParseWholeBody("endif");
      return stmt;
    }
  }

  StmtPtr ParseFor(int line) {
    StmtPtr stmt = Make(StmtKind::kFor, line);
    stmt->target = in_.ParseTarget(false, "in");
    if (!in_.SkipName("in")) in_.Fail("expected 'in', found " + in_.Describe());
    stmt->exprs.push_back(in_.ParseTuple(false, "recursive"));
    if (in_.SkipName("if")) stmt->test = in_.ParseExpression();
    if (in_.IsName("recursive")) in_.Fail("a recursive loop is not supported");
    ++loops_;
    stmt->body = ParseBody({"endfor", "else"});
    --loops_;
    if (in_.Next().text == "else") stmt->otherwise = ParseWholeBody("endfor");
    return stmt;
  }

  StmtPtr ParseWith(int line) {
    StmtPtr stmt = Make(StmtKind::kWith, line);
    while (in_.current().kind != TokenKind::kBlockEnd) {
      if (!stmt->targets.empty()) in_.ExpectOperator(",");
      stmt->targets.push_back(in_.ParseTarget(false));
      in_.ExpectOperator("=");
      stmt->exprs.push_back(in_.ParseExpression());
    }
    stmt->body = ParseWholeBody("endwith");
    return stmt;
  }

  void ParseSignature(Stmt* stmt) {
    in_.ExpectOperator("(");
    while (!in_.IsOperator(")")) {
      if (!stmt->parameters.empty()) in_.ExpectOperator(",");
      stmt->parameters.push_back(in_.ExpectName());
      if (in_.SkipOperator("=")) {
        stmt->defaults.push_back(in_.ParseExpression());
      } else if (!stmt->defaults.empty()) {
        in_.Fail("a parameter without a default follows one with a default");
      }
    }
    in_.ExpectOperator(")");
  }

  // Loops around a macro's definition do not enclose its body.
  void ParseFunctionBody(const std::string& end, Stmt* stmt) {
    const int loops = loops_;
    loops_ = 0;
    const ExpressionParser::SpecialNames before = in_.special_names();
    stmt->body = ParseWholeBody(end);
    stmt->takes_varargs = in_.special_names().varargs > before.varargs;
    stmt->takes_kwargs = in_.special_names().kwargs > before.kwargs;
    stmt->takes_caller = in_.special_names().caller > before.caller;
    loops_ = loops;
  }

  StmtPtr ParseMacro(int line) {
    StmtPtr stmt = Make(StmtKind::kMacro, line);
    stmt->name = in_.ExpectName();
    ParseSignature(stmt.get());
    ParseFunctionBody("endmacro", stmt.get());
    return stmt;
  }

  StmtPtr ParseCall(int line) {
    StmtPtr stmt = Make(StmtKind::kCall, line);
    stmt->name = "caller";
    if (in_.IsOperator("(")) ParseSignature(stmt.get());
    stmt->exprs.push_back(in_.ParseExpression());
    if (stmt->exprs[0]->kind != ExprKind::kCall) in_.FailAt(line, "expected a call");
    ParseFunctionBody("endcall", stmt.get());
    return stmt;
  }

  StmtPtr ParseFilterBlock(int line) {
    StmtPtr stmt = Make(StmtKind::kFilter, line);
    stmt->filter = in_.ParseFilters(nullptr, true);
    stmt->body = ParseWholeBody("endfilter");
    return stmt;
  }

  StmtPtr ParsePrint(int line) {
    StmtPtr stmt = Make(StmtKind::kOutput, line);
    while (in_.current().kind != TokenKind::kBlockEnd) {
      if (!stmt->exprs.empty()) in_.ExpectOperator(",");
      stmt->exprs.push_back(in_.ParseExpression());
    }
    return stmt;
  }

  ExpressionParser in_;
  const TemplateOptions& options_;
  int nesting_ = 0;
  int loops_ = 0;
};

}  // namespace

Body ParseTemplate(const std::string& source, const TemplateOptions& options) {
  return Parser(Tokenize(source, options), options).Run();
}

}  // namespace evald::jinja

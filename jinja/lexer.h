#pragma once

#include <string>
#include <vector>

#include "jinja/options.h"

namespace evald::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,   ///< text: the string, escapes resolved
  kInteger,  ///< text: the digits, without underscores
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
};

/// Cuts a template into tokens as jinja2's lexer does, with the same control of white space. The
/// last token is kEnd. Throws Error(kInput) "line <n>: ...".
std::vector<Token> Tokenize(const std::string& source, const TemplateOptions& options);

}  // namespace evald::jinja

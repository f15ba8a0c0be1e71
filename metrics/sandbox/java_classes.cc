// The classes of a Java file, found without a parser: words and braces outside comments and texts.

#include <cctype>

#include "metrics/sandbox/program_files.h"

namespace evald::sandbox {
namespace {

bool IsWordByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The tokens of a file: words, and single other characters.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  /// "" at the end.
  std::string_view Next() {
    while (at_ < text_.size()) {
      if (SkipIgnored()) continue;
      const size_t begin = at_++;
      if (IsWordByte(text_[begin])) {
        while (at_ < text_.size() && IsWordByte(text_[at_])) ++at_;
      }
      return text_.substr(begin, at_ - begin);
    }
    return {};
  }

 private:
  bool At(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  void SkipTo(std::string_view end) {
    const size_t found = text_.find(end, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }

  void SkipQuoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ < text_.size()) ++at_;
  }

  /// White space, comments, texts and characters.
  bool SkipIgnored() {
    const size_t before = at_;
    if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    } else if (At("//")) {
      SkipTo("\n");
    } else if (At("/*")) {
      at_ += 2;
      SkipTo("*/");
    } else if (At("\"\"\"")) {
      at_ += 3;
      SkipTo("\"\"\"");
    } else if (text_[at_] == '"' || text_[at_] == '\'') {
      SkipQuoted(text_[at_]);
    }
    if (at_ > text_.size()) at_ = text_.size();
    return at_ != before;
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool IsKindOfClass(std::string_view word) {
  return word == "class" || word == "interface" || word == "enum" || word == "record";
}

}  // namespace

JavaClasses FindJavaClasses(std::string_view text) {
  JavaClasses found;
  Tokens tokens(text);
  std::string outermost;
  int depth = 0;
  bool is_public = false;
  std::string_view last[3];  // the words before this one, the nearest first
  for (std::string_view token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token == "{") ++depth;
    if (token == "}" && depth > 0) --depth;
    if (depth == 0 && token == "package" && last[0].empty()) {
      for (token = tokens.Next(); !token.empty() && token != ";"; token = tokens.Next())
        found.package += token;
    }
    if (depth == 0 && IsKindOfClass(last[0]) && IsWordByte(token[0])) {
      outermost = token;
      if (is_public && found.public_class.empty()) found.public_class = outermost;
    }
    if (depth == 0) is_public = token == "public" || (is_public && token != ";" && token != "}");
    const bool is_main = token == "main" && last[0] == "void" &&
                         (last[1] == "static" || (last[1] == "final" && last[2] == "static") ||
                          (last[1] == "public" && last[2] == "static"));
    if (is_main && depth > 0 && found.main_class.empty()) found.main_class = outermost;
    last[2] = last[1];
    last[1] = last[0];
    last[0] = token;
  }
  return found;
}

}  // namespace evald::sandbox

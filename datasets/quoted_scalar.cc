#include "datasets/quoted_scalar.h"

#include <algorithm>
#include <cstdint>

#include "python/unicode.h"

namespace evald {
namespace {

// Length of the line break at `at`; 0 if there is none.
size_t BreakLength(std::string_view text, size_t at) {
  if (at >= text.size()) return 0;
  if (text.substr(at, 2) == "\r\n" || text.substr(at, 2) == "\xc2\x85") return 2;
  if (text[at] == '\n' || text[at] == '\r') return 1;
  const std::string_view three = text.substr(at, 3);
  return three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9" ? 3 : 0;
}

bool IsBlank(std::string_view text, size_t at) {
  return at < text.size() && (text[at] == ' ' || text[at] == '\t');
}

// Skips anchors and tags, which stand before a scalar.
size_t SkipProperties(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    while (at < text.size() && !IsBlank(text, at) && BreakLength(text, at) == 0) ++at;
    while (IsBlank(text, at) || BreakLength(text, at) != 0) ++at;
  }
  return at;
}

class QuotedScanner {
 public:
  QuotedScanner(std::string_view text, size_t at) : text_(text), at_(at + 1), quote_(text[at]) {}

  std::optional<std::string> Run() {
    while (at_ < text_.size()) {
      if (text_[at_] == quote_) {
        if (quote_ == '"' || at_ + 1 >= text_.size() || text_[at_ + 1] != '\'') return out_;
        out_ += '\'';
        at_ += 2;
      } else if (quote_ == '"' && text_[at_] == '\\') {
        if (!Escape()) return std::nullopt;
      } else if (IsBlank(text_, at_) || BreakLength(text_, at_) != 0) {
        Fold(false);
      } else {
        out_ += text_[at_++];
      }
    }
    return std::nullopt;
  }

 private:
  // Folds white space inside a scalar: blanks stay, one line break becomes a space, and of several
  // line breaks all but the first stay. After an escaped line break only the further ones count.
  void Fold(bool escaped_break) {
    std::string blanks;
    std::string first;
    std::string further;
    bool broken = escaped_break;
    while (true) {
      if (IsBlank(text_, at_)) {
        if (!broken) blanks += text_[at_];
        ++at_;
        continue;
      }
      const size_t length = BreakLength(text_, at_);
      if (length == 0) break;
      const std::string line_break(length == 3 ? text_.substr(at_, 3) : "\n");
      at_ += length;
      if (broken) {
        further += line_break;
      } else {
        first = line_break;
        broken = true;
      }
    }
    if (!broken) {
      out_ += blanks;
    } else if (first == "\n") {
      out_ += further.empty() ? " " : further;
    } else {
      out_ += first + further;
    }
  }

  bool Escape() {
    ++at_;
    if (const size_t length = BreakLength(text_, at_)) {
      at_ += length;
      Fold(true);
      return true;
    }
    if (at_ >= text_.size()) return false;
    const char c = text_[at_++];
    const std::string_view plain = "abtnvfre \"/\\\t0";
    const std::string_view meant("\a\b\t\n\v\f\r\x1b \"/\\\t\0", 14);
    if (const size_t found = plain.find(c); found != std::string_view::npos) {
      out_ += meant[found];
      return true;
    }
    const char32_t named = c == 'N'   ? 0x85
                           : c == '_' ? 0xa0
                           : c == 'L' ? 0x2028
                           : c == 'P' ? 0x2029
                                      : 0;
    if (named != 0) {
      python::AppendUtf8(named, &out_);
      return true;
    }
    return Code(c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0);
  }

  bool Code(size_t digits) {
    if (digits == 0 || at_ + digits > text_.size()) return false;
    uint32_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const std::string_view hex = "0123456789abcdef";
      const size_t digit = hex.find(static_cast<char>(text_[at_ + i] | 0x20));
      if (digit == std::string_view::npos) return false;
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    at_ += digits;
    python::AppendUtf8(code, &out_);
    return true;
  }

  std::string_view text_;
  size_t at_;
  char quote_;
  std::string out_;
};

// Literal (|) and folded (>) text: yaml_parser_scan_block_scalar of libyaml.
class BlockScanner {
 public:
  BlockScanner(std::string_view text, size_t at, int indent)
      : text_(text), at_(at + 1), literal_(text[at] == '|'), parent_(indent) {}

  std::optional<std::string> Run() {
    if (!ReadHeader()) return std::nullopt;
    std::string breaks = increment_ == 0 ? FirstBreaks() : Breaks();
    std::string line_break;
    bool leading_blank = false;
    while (column_ == indent_ && at_ < text_.size()) {
      const bool blank = IsBlank(text_, at_);
      if (!literal_ && line_break == "\n" && !leading_blank && !blank) {
        if (breaks.empty()) out_ += ' ';
      } else {
        out_ += line_break;
      }
      out_ += breaks;
      leading_blank = blank;
      while (at_ < text_.size() && BreakLength(text_, at_) == 0) out_ += text_[at_++];
      line_break = TakeBreak();
      breaks = Breaks();
    }
    if (keep_ >= 0) out_ += line_break;
    if (keep_ > 0) out_ += breaks;
    return out_;
  }

 private:
  // The signs after the indicator, and a comment.
  bool ReadHeader() {
    for (; at_ < text_.size() && !IsBlank(text_, at_) && BreakLength(text_, at_) == 0; ++at_) {
      if (text_[at_] == '+' || text_[at_] == '-') {
        keep_ = text_[at_] == '+' ? 1 : -1;
      } else if (text_[at_] >= '1' && text_[at_] <= '9') {
        increment_ = text_[at_] - '0';
      } else {
        return false;
      }
    }
    while (at_ < text_.size() && BreakLength(text_, at_) == 0) ++at_;
    TakeBreak();
    indent_ = increment_ == 0 ? 0 : std::max(parent_, 0) + increment_;
    return true;
  }

  std::string TakeBreak() {
    const size_t length = BreakLength(text_, at_);
    if (length == 0) return "";
    const std::string taken(length == 3 ? text_.substr(at_, 3) : "\n");
    at_ += length;
    column_ = 0;
    return taken;
  }

  void SkipSpaces() {
    while (column_ < indent_ && at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
      ++column_;
    }
  }

  std::string Breaks() {
    std::string breaks;
    for (SkipSpaces(); BreakLength(text_, at_) != 0; SkipSpaces()) breaks += TakeBreak();
    return breaks;
  }

  // The empty lines before the text. The first line of text decides the indentation.
  std::string FirstBreaks() {
    std::string breaks;
    int deepest = 0;
    while (at_ < text_.size() && (text_[at_] == ' ' || BreakLength(text_, at_) != 0)) {
      if (text_[at_] != ' ') {
        breaks += TakeBreak();
        continue;
      }
      ++at_;
      deepest = std::max(deepest, ++column_);
    }
    indent_ = std::max({deepest, parent_ + 1, 1});
    return breaks;
  }

  std::string_view text_;
  size_t at_;
  bool literal_;
  int parent_;
  int keep_ = 0;       // line breaks to keep at the end: none, one, or all
  int increment_ = 0;  // of the indentation, if the header gives it
  int indent_ = 0;
  int column_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> ReadBlockScalar(std::string_view text, size_t at, int indent) {
  at = SkipProperties(text, at);
  if (at >= text.size() || (text[at] != '|' && text[at] != '>')) return std::nullopt;
  return BlockScanner(text, at, indent).Run();
}

std::optional<std::string> ReadQuotedScalar(std::string_view text, size_t at) {
  at = SkipProperties(text, at);
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return std::nullopt;
  return QuotedScanner(text, at).Run();
}

}  // namespace evald

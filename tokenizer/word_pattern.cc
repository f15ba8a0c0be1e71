#include "tokenizer/word_pattern.h"

#include <string>

#include "tokenizer/byte_level.h"
#include "tokenizer/character_classes.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

// Patterns of the second family: the texts before and after their part for digits.
constexpr std::string_view kBeforeDigits =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
constexpr std::string_view kBehindDigits = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Reads a text character by character, with the classes of each.
class Cursor {
 public:
  Cursor(std::string_view text, size_t at, const uint8_t* classes)
      : text_(text), at_(at), classes_(classes) {
    Read();
  }

  bool AtEnd() const { return at_ >= text_.size(); }
  size_t at() const { return at_; }
  char32_t code() const { return code_; }
  /// 0 for a character without a class; kNone at the end.
  uint8_t kind() const { return kind_; }
  void Next() {
    at_ = next_;
    Read();
  }
  static constexpr uint8_t kNone = 0x80;

 private:
  void Read() {
    if (AtEnd()) {
      kind_ = kNone;
      code_ = 0;
      return;
    }
    next_ = at_;
    code_ = static_cast<unsigned char>(text_[at_]);
    if (code_ < 0x80) {
      ++next_;
    } else {
      code_ = NextCodePoint(text_, &next_);
    }
    kind_ = classes_[code_];
  }

  std::string_view text_;
  size_t at_;
  const uint8_t* classes_;
  size_t next_ = 0;
  char32_t code_ = 0;
  uint8_t kind_ = 0;
};

// The end of all characters of one class.
size_t EndOfRun(Cursor cursor, uint8_t kind) {
  while (cursor.kind() == kind) cursor.Next();
  return cursor.at();
}

bool IsNewline(char32_t code) { return code == '\r' || code == '\n'; }

// \s+(?!\S)|\s+ at a white-space character. Ends at the end of the text if only white space is
// left, else before the last white-space character of the run, else (the run is a single character)
// after that character.
size_t EndOfSpace(Cursor cursor) {
  const size_t begin = cursor.at();
  size_t last = begin;
  while (cursor.kind() == kSpace) {
    last = cursor.at();
    cursor.Next();
  }
  return cursor.AtEnd() || last == begin ? cursor.at() : last;
}

// The end of 's, 't, 're, 've, 'm, 'll or 'd at an apostrophe; 0 for none.
size_t EndOfContraction(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at + 1, 2);
  if (rest.empty()) return 0;
  if (rest[0] == 's' || rest[0] == 't' || rest[0] == 'm' || rest[0] == 'd') return at + 2;
  return rest == "re" || rest == "ve" || rest == "ll" ? at + 3 : 0;
}

// The same without regard to case. U+017F, the long s, folds to s.
size_t EndOfAnyContraction(std::string_view text, size_t at) {
  if (text.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
  char lower[2] = {0, 0};
  const std::string_view rest = text.substr(at + 1, 2);
  for (size_t i = 0; i < rest.size(); ++i) {
    lower[i] = rest[i] >= 'A' && rest[i] <= 'Z' ? static_cast<char>(rest[i] + 32) : rest[i];
  }
  const char first = lower[0], second = lower[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  const bool pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                    (first == 'l' && second == 'l');
  return pair ? at + 3 : 0;
}

}  // namespace

WordPattern::WordPattern(bool gpt2, size_t digits_max)
    : gpt2_(gpt2), digits_max_(digits_max), classes_(CharacterClasses()) {}

std::optional<WordPattern> WordPattern::Recognize(std::string_view expression) {
  if (expression == kGpt2Pattern) return WordPattern(true, 0);
  if (!expression.starts_with(kBeforeDigits) || !expression.ends_with(kBehindDigits)) {
    return std::nullopt;
  }
  expression.remove_prefix(kBeforeDigits.size());
  if (expression.size() < kBehindDigits.size()) return std::nullopt;
  expression.remove_suffix(kBehindDigits.size());
  if (expression == R"(\p{N})") return WordPattern(false, 1);
  if (expression == R"(\p{N}{1,3})") return WordPattern(false, 3);
  if (expression == R"(\p{N}+)") return WordPattern(false, std::string_view::npos);
  return std::nullopt;
}

size_t WordPattern::EndGpt2(std::string_view text, size_t at) const {
  Cursor cursor(text, at, classes_);
  if (cursor.code() == '\'') {
    if (const size_t end = EndOfContraction(text, at); end != 0) return end;
  }
  if (cursor.kind() == kSpace) {
    Cursor behind = cursor;
    behind.Next();
    const bool spaced =
        cursor.code() == ' ' && behind.kind() != kSpace && behind.kind() != Cursor::kNone;
    return spaced ? EndOfRun(behind, behind.kind()) : EndOfSpace(cursor);
  }
  return EndOfRun(cursor, cursor.kind());
}

size_t WordPattern::EndGpt4(std::string_view text, size_t at) const {
  Cursor cursor(text, at, classes_);
  if (cursor.kind() == kLetter) return EndOfRun(cursor, kLetter);
  if (cursor.code() == '\'') {
    if (const size_t end = EndOfAnyContraction(text, at); end != 0) return end;
  }
  if (cursor.kind() == kNumber) {
    for (size_t i = 0; i < digits_max_ && cursor.kind() == kNumber; ++i) cursor.Next();
    return cursor.at();
  }
  Cursor behind = cursor;
  behind.Next();
  if (behind.kind() == kLetter && !IsNewline(cursor.code())) return EndOfRun(behind, kLetter);
  if (cursor.kind() == 0 || (cursor.code() == ' ' && behind.kind() == 0)) {
    while (behind.kind() == 0) behind.Next();
    while (IsNewline(behind.code())) behind.Next();
    return behind.at();
  }
  size_t behind_newline = 0;  // after the last line break in this white space
  for (Cursor space = cursor; space.kind() == kSpace;) {
    const bool newline = IsNewline(space.code());
    space.Next();
    if (newline) behind_newline = space.at();
  }
  return behind_newline != 0 ? behind_newline : EndOfSpace(cursor);
}

}  // namespace evald::tok

#include "tokenizer/character_classes.h"

#include <vector>

#include "base/regex.h"
#include "tokenizer/expression.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

constexpr char32_t kCodePoints = 0x110000;

std::vector<uint8_t> MakeClasses() {
  std::vector<uint8_t> classes(kCodePoints, 0);
  const auto mark = [&](const char* property, CharacterClass bit) {
    for (const CodeRange& range : PropertyRanges(property)) {
      for (char32_t code = range.first; code <= range.last; ++code) classes[code] |= bit;
    }
  };
  mark("L", kLetter);
  mark("N", kNumber);
  for (char32_t code = 0; code <= 0x3000; ++code) {
    if (IsWhitespace(code)) classes[code] |= kSpace;
  }
  return classes;
}

}  // namespace

const uint8_t* CharacterClasses() {
  static const std::vector<uint8_t> classes = MakeClasses();
  return classes.data();
}

}  // namespace evald::tok

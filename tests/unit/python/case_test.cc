// Case against CPython's own tables, which the test asks of this machine's interpreter.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "python/unicode.h"

namespace evald::python {
namespace {

/// Prints for each assigned character, in order: its code, and the last letters of two words in
/// lower case. The lower case of a sigma at the end of a word depends on whether the character
/// before it is ignored.
constexpr const char* kAsk =
    "/usr/bin/python3 -S -c \"\n"
    "import unicodedata\n"
    "for code in range(0x110000):\n"
    "    c = chr(code)\n"
    "    if unicodedata.category(c) in ('Cn', 'Cs', 'Co'): continue\n"
    "    ends = [ord((word + chr(0x3a3)).lower()[-1]) for word in ('A' + c, c)]\n"
    "    ends.append(ord(('A' + chr(0x3a3) + c + 'A').lower()[1]))\n"
    "    print(code, *ends)\n"
    "\"";

TEST(Case, EverySigmaIsAsInPython) {
  if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
  FILE* const answers = popen(kAsk, "r");
  ASSERT_NE(answers, nullptr);
  unsigned code, after_letter, alone, before_letter;
  size_t asked = 0, differing = 0;
  while (std::fscanf(answers, "%u %u %u %u", &code, &after_letter, &alone, &before_letter) == 4) {
    ++asked;
    const auto c = static_cast<char32_t>(code);
    const auto lower = [](const std::u32string& text) { return Decode(Lower(Encode(text))); };
    const bool same = lower(U"A" + std::u32string(1, c) + U"\u03a3").back() == after_letter &&
                      lower(std::u32string(1, c) + U"\u03a3").back() == alone &&
                      lower(U"A\u03a3" + std::u32string(1, c) + U"A")[1] == before_letter;
    if (same) continue;
    ++differing;
    ADD_FAILURE() << "U+" << std::hex << code;
    if (differing == 20) break;
  }
  pclose(answers);
  EXPECT_GT(asked, 100'000u);
}

}  // namespace
}  // namespace evald::python

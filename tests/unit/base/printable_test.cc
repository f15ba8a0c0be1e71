#include <gtest/gtest.h>

#include <string>

#include "base/print.h"
#include "base/text.h"

namespace evald {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string text :
       {"", "a line\n\tand another", "naïve café – 日本語 🙂", "\\x1b is written so"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, WritesOutBytesThatAreNoText) {
  EXPECT_EQ(Printable("co\xf3ts"), "co\\xf3ts");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Printable("cut \xe6\x97"), "cut \\xe6\\x97");
}

TEST(Printable, WritesOutWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("\x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_EQ(Printable("over\rwritten\b\x7f"), "over\\x0dwritten\\x08\\x7f");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
  // CSI as one character; a no-break space may stay
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J\xc2\xa0"),
            "\\u009b2J\xc2\xa0");
}

TEST(Printable, WritesOutWhatChangesTheOrderOfTextOrItsLine) {
  EXPECT_EQ(Printable("a\u202e"
                      "b\u2066c\u2069"),
            "a\\u202eb\\u2066c\\u2069");
  EXPECT_EQ(Printable("1\u200e2\u200f3\u061c4"), "1\\u200e2\\u200f3\\u061c4");
  // the neighbours of those characters stay
  EXPECT_EQ(Printable("\u200d\u2010\u061b\u061d"), "\u200d\u2010\u061b\u061d");
  EXPECT_EQ(Printable("a\u2028"
                      "b\u2029"),
            "a\\u2028b\\u2029");
  // the neighbours of those characters stay
  EXPECT_EQ(Printable("\u2027\u202f\u2065\u206a\u007e"), "\u2027\u202f\u2065\u206a\u007e");
}

TEST(PrintableLine, IsOneLine) {
  EXPECT_EQ(PrintableLine("one\n\ttwo\r\x1b[0m caf\u00e9"), "one\\n\\ttwo\\x0d\\x1b[0m caf\u00e9");
}

/// The text that `print` writes.
template <typename Printer>
std::string Written(const Printer& print) {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* const file = open_memstream(&text, &bytes);
  print(file);
  std::fclose(file);
  std::string written(text, bytes);
  free(text);
  return written;
}

TEST(Print, NoValueForgesALine) {
  const std::string name = "x\nevald: done";
  const auto print = [&](FILE* to) {
    Print(to, "{:<4} {}\n{} {:.1f}\n", "a\tb", name, std::string_view(name), 0.25);
  };
  EXPECT_EQ(Written(print), "a\\tb x\\nevald: done\nx\\nevald: done 0.2\n");
}

TEST(Shortened, EndsBetweenTwoCharacters) {
  EXPECT_EQ(Shortened("", 0), "");
  EXPECT_EQ(Shortened("four", 4), "four");
  EXPECT_EQ(Shortened("fours", 4), "four…");
  EXPECT_EQ(Shortened("日本語", 9), "日本語");
  for (const size_t bytes : {6, 7, 8}) EXPECT_EQ(Shortened("日本語", bytes), "日本…");
  EXPECT_EQ(Shortened("日本語", 2), "…");
  EXPECT_EQ(Shortened(std::string(9, '\x80'), 4), std::string(1, '\x80') + "…");
}

TEST(IsAscii, IsTrueOfBytesBelow128) {
  EXPECT_TRUE(IsAscii(""));
  EXPECT_TRUE(IsAscii(std::string("\0 \x7f", 3)));
  EXPECT_FALSE(IsAscii("caf\xc3\xa9"));
  EXPECT_FALSE(IsAscii("\x80"));
}

}  // namespace
}  // namespace evald

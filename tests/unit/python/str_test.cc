// Methods of str, as in CPython 3.11.
#include "python/str.h"

#include <gtest/gtest.h>

namespace evald::python {
namespace {

using Parts = std::vector<std::string>;

TEST(PythonStr, KnowsDigitsAndSpace) {
  EXPECT_TRUE(IsDigits("12\xc2\xb2"));
  EXPECT_FALSE(IsDigits("1.2"));
  EXPECT_TRUE(EndsWithSpace("a\xc2\xa0"));
  EXPECT_FALSE(EndsWithSpace(""));
  EXPECT_TRUE(StartsWithSpace("\u3000a"));
}

TEST(PythonStr, Strips) {
  EXPECT_EQ(Strip(" \x1c\u00a0a b\u2003\n"), "a b");
  EXPECT_EQ(StripLeft(" a "), "a ");
  EXPECT_EQ(StripRight(" a "), " a");
  EXPECT_EQ(Strip(" \t"), "");
  EXPECT_EQ(StripCharacters("\u00e4xa\u00e4", "x\u00e4", true, true), "a");
  EXPECT_EQ(StripCharacters("xax", "x", false, true), "xa");
  EXPECT_EQ(StripCharacters(" a ", "", true, true), " a ");
}

TEST(PythonStr, SplitsAtSpace) {
  EXPECT_EQ(Split(" a\u2003b  c ", -1, false), (Parts{"a", "b", "c"}));
  EXPECT_EQ(Split(" a  b c ", 1, false), (Parts{"a", "b c "}));
  EXPECT_EQ(Split(" a b ", 0, false), (Parts{"a b "}));
  EXPECT_EQ(Split(" a b  c ", 1, true), (Parts{" a b", "c"}));
  EXPECT_EQ(Split(" a b ", -1, true), (Parts{"a", "b"}));
  EXPECT_EQ(Split(" ", -1, false), Parts{});
}

TEST(PythonStr, SplitsAtSeparators) {
  EXPECT_EQ(Split("a,b,,c", ",", -1, false), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(Split("a,b,c", ",", 1, false), (Parts{"a", "b,c"}));
  EXPECT_EQ(Split("a,b,c", ",", 1, true), (Parts{"a,b", "c"}));
  EXPECT_EQ(Split("", ",", -1, false), (Parts{""}));
}

TEST(PythonStr, SplitsLines) {
  EXPECT_EQ(SplitLines("a\r\nb\u2028c\n\nd", false), (Parts{"a", "b", "c", "", "d"}));
  EXPECT_EQ(SplitLines("a\r\nb\n", true), (Parts{"a\r\n", "b\n"}));
}

}  // namespace
}  // namespace evald::python

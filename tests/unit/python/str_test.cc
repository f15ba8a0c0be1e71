// Methods of str, as in CPython 3.11.
#include "python/str.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace evald::python {
namespace {

using Parts = std::vector<std::string>;

Parts SplitOf(std::string_view text, int64_t limit, bool from_right) {
  Parts parts;
  Split(text, limit, from_right, [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}
Parts SplitOf(std::string_view text, std::string_view separator, int64_t limit, bool from_right) {
  Parts parts;
  Split(text, separator, limit, from_right,
        [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}
Parts LinesOf(std::string_view text, bool keep_ends) {
  Parts parts;
  SplitLines(text, keep_ends, [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}

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
  EXPECT_EQ(SplitOf(" a\u2003b  c ", -1, false), (Parts{"a", "b", "c"}));
  EXPECT_EQ(SplitOf(" a  b c ", 1, false), (Parts{"a", "b c "}));
  EXPECT_EQ(SplitOf(" a b ", 0, false), (Parts{"a b "}));
  EXPECT_EQ(SplitOf(" a b  c ", 1, true), (Parts{"c", " a b"}));
  EXPECT_EQ(SplitOf(" a b ", -1, true), (Parts{"b", "a"}));
  EXPECT_EQ(SplitOf(" ", -1, false), Parts{});
}

TEST(PythonStr, SplitsAtSeparators) {
  EXPECT_EQ(SplitOf("a,b,,c", ",", -1, false), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(SplitOf("a,b,c", ",", 1, false), (Parts{"a", "b,c"}));
  EXPECT_EQ(SplitOf("a,b,c", ",", 1, true), (Parts{"c", "a,b"}));
  EXPECT_EQ(SplitOf("a,,b", ",", -1, true), (Parts{"b", "", "a"}));
  EXPECT_EQ(SplitOf("a,b", ",", 0, true), (Parts{"a,b"}));
  EXPECT_EQ(SplitOf("", ",", -1, false), (Parts{""}));
}

TEST(PythonStr, SplitsLines) {
  EXPECT_EQ(LinesOf("a\r\nb\u2028c\n\nd", false), (Parts{"a", "b", "c", "", "d"}));
  EXPECT_EQ(LinesOf("a\r\nb\n", true), (Parts{"a\r\n", "b\n"}));
}

}  // namespace
}  // namespace evald::python

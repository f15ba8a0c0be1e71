// A program's output against the expected one. The answers of Decimal are those of CPython 3.11's
// decimal.
#include "metrics/scoring/output_match.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

bool Same(std::string_view found, std::string_view expected) {
  std::string why;
  const bool same = SameOutput(found, expected, &why);
  EXPECT_EQ(same, why.empty()) << why;
  return same;
}

TEST(OutputMatch, WhiteSpaceAtEndsOfTextAndLinesDoesNotCount) {
  EXPECT_TRUE(Same("1 2 \n 3\n\n", "1 2\n3"));
  EXPECT_TRUE(Same("\n\n3", "3\r\n"));
  EXPECT_TRUE(Same("", " \n "));
  EXPECT_FALSE(Same("1\n\n2", "1\n2"));
  EXPECT_FALSE(Same("1\n2", "1"));
  EXPECT_FALSE(Same("a  b", "a b"));
  EXPECT_TRUE(Same("\u00a0x\u3000", "x"));  // Python's strip takes Unicode's white space
}

TEST(OutputMatch, LinesOfNumbersAreEqualByValue) {
  EXPECT_TRUE(Same("1.0  2", "1 2.00"));
  EXPECT_TRUE(Same("-0.50 1e3", "-.5 1000"));
  EXPECT_FALSE(Same("0.30000000000000004", "0.3"));
  EXPECT_FALSE(Same("50000000000000000", "50000000000000001"));
  EXPECT_FALSE(Same("1 x", "1.0 x"));
  EXPECT_FALSE(Same("1 2", "1"));
  EXPECT_FALSE(Same("nan", "NaN"));
  EXPECT_TRUE(Same("nan", "nan"));  // equal as texts
}

TEST(OutputMatch, NumbersAreThoseOfDecimal) {
  EXPECT_TRUE(SameDecimal("1_000", "1e3"));
  EXPECT_TRUE(SameDecimal("+Infinity", "inf"));
  EXPECT_FALSE(SameDecimal("-inf", "inf"));
  EXPECT_TRUE(SameDecimal("-0", "0.000"));
  EXPECT_TRUE(SameDecimal("1.", "1"));
  EXPECT_TRUE(SameDecimal("00120e-1", "12"));
  EXPECT_TRUE(SameDecimal("1e999999999999999999", "10e999999999999999998"));
  EXPECT_FALSE(SameDecimal("1e99999999999999999999", "1e99999999999999999999"));
  for (const char* none : {"", ".", "+", "1e", "e5", "0x10", "1,000", "--1", "infinite", "1 "})
    EXPECT_FALSE(SameDecimal(none, none)) << none;
}

TEST(OutputMatch, TheFirstDifferenceIsTold) {
  std::string why;
  EXPECT_FALSE(SameOutput("1\n2\n3", "1\n5\n3", &why));
  EXPECT_EQ(why, "line 2 is '2', expected '5'");
  EXPECT_FALSE(SameOutput("1", "1\n5", &why));
  EXPECT_EQ(why, "found 1 lines, expected 2");
}

}  // namespace
}  // namespace evald

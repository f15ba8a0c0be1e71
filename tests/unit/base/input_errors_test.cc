// Messages about text that cannot be read: JSON with half a character, YAML that is indented by
// tabs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

#include "base/jsonl.h"
#include "base/yaml_tabs.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Refusal(const std::string& text) {
  return RefusalOf([&] { ParseJson(text, "d.jsonl:7"); });
}

TEST(JsonErrors, HalfOfACharacterNamesItsKey) {
  EXPECT_EQ(Refusal(R"({"q": "\ud83d\ude00"})"), "");
  EXPECT_THAT(Refusal(R"({"a": 1, "question": "see \ud800 here"})"),
              StartsWith("d.jsonl:7: key 'question': not JSON at byte 33: found \\ud800, the first "
                         "half of a character without the other"));
  EXPECT_THAT(Refusal(R"({"question": "\uDE00"})"), HasSubstr("key 'question': "));
  EXPECT_THAT(Refusal(R"({"question": "\uDE00"})"), HasSubstr("found \\uDE00, the second half"));
  EXPECT_THAT(Refusal(R"({"q": {"inner": ["\ud800\u0041"]}})"), HasSubstr("key 'inner': not JSON"));
  EXPECT_THAT(Refusal(R"({"q": "\ud800\u0041"})"), HasSubstr("found \\ud800, the first half"));
  EXPECT_THAT(Refusal(R"("\ud800")"), HasSubstr("d.jsonl:7: not JSON at byte"));
  EXPECT_THAT(Refusal(R"({"q": "\ud8"})"), HasSubstr("not JSON at byte"))
      << "no half, but no escape at all";
}

TEST(JsonErrors, AFileInUtf16StillNamesWhatIsExpected) {
  const std::string text = Refusal(std::string("\xff\xfe{\0\"\0a\0\"\0:\0001\0}\0", 16));
  EXPECT_THAT(text, HasSubstr("d.jsonl:7: not JSON at byte 1: found '\\xff\\xfe{\\x00\"\\x00a"));
  EXPECT_THAT(text, HasSubstr("; expected one JSON value in UTF-8"));
}

TEST(JsonErrors, ANumberOfManyDigitsIsShortened) {
  const std::string text = Refusal("{\"a\": " + std::string(100'000, '9') + "}");
  EXPECT_THAT(text, StartsWith("d.jsonl:7: found the number 9999"));
  EXPECT_THAT(text, HasSubstr("… (100000 characters), expected a number that a 64-bit float can "
                              "hold; write a smaller number"));
  EXPECT_LT(text.size(), 300u);
  EXPECT_THAT(Refusal("[1e999]"), StartsWith("d.jsonl:7: found the number 1e999, expected"));
}

TEST(Errors, AreOneLineWithoutZeros) {
  Error error(ErrorKind::kInput, std::string("tensor 'x\nevald: done\0y\r'", 25), "look\nhere");
  error.AddContext("a\nb");
  EXPECT_STREQ(error.what(), "a\\nb: tensor 'x\\nevald: done\\x00y\\r'; look\\nhere");
  EXPECT_EQ(error.message(), "a\\nb: tensor 'x\\nevald: done\\x00y\\r'");
}

TEST(YamlTabs, ALineCountsThatIsIndentedByOne) {
  EXPECT_EQ(LineIndentedByTab("a: 1\n\tb: 2\n", 1, INT_MAX), 2);
  EXPECT_EQ(LineIndentedByTab("a:\n  \t- b\n", 1, INT_MAX), 2);
  EXPECT_EQ(LineIndentedByTab("a:\tb\n  c: d\t\n", 1, INT_MAX), 0) << "not within a line";
  EXPECT_EQ(LineIndentedByTab("a: 1\n\t\n\t# b\n", 1, INT_MAX), 0)
      << "not blank lines and comments";
  EXPECT_EQ(LineIndentedByTab("\ta: 1\nb: 2\n", 2, 2), 0);
  EXPECT_EQ(LineIndentedByTab("", 1, INT_MAX), 0);
}

}  // namespace
}  // namespace evald

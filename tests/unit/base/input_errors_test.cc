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

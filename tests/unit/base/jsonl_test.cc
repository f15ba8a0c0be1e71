#include "base/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

std::string RefusalOfJson(const std::string& text) {
  return RefusalOf([&] { ParseJson(text, "f.json"); });
}

// Python's json writes these values. The error must show where in the file they are.
// As Json::parse, whatever the number of keys: a key keeps its first place and has its last value.
TEST(ParseJson, RepeatedKeysAreAsOfTheLibrary) {
  for (const int keys : {3, 15, 16, 17, 40, 1000}) {
    std::string text = "[{";
    for (int i = 0; i < keys; ++i) {
      text += (i == 0 ? "\"k" : ",\"k") + std::to_string(i * i % 37) + "\":{\"v\":[" +
              std::to_string(i) + ",{\"w\":null}]}";
    }
    text += "},[],{},true,-1,2.5,\"t\"]";
    EXPECT_EQ(ToLine(ParseJson(text, "t")), ToLine(Json::parse(text))) << keys;
  }
  EXPECT_EQ(ParseJson("7", "t"), Json(7));
}

TEST(ParseJson, NamesTheLineOfNaNAndInfinity) {
  EXPECT_EQ(RefusalOfJson("{\n \"a\": NaN}"),
            "f.json: line 2 holds NaN, which Python's json writes and which is no JSON; write a "
            "number, or null, in its place");
  EXPECT_THAT(RefusalOfJson("{\"a\":1,\n\n\"b\":[-Infinity]}"),
              testing::HasSubstr("line 3 holds Infinity"));
  EXPECT_THAT(RefusalOfJson("Infinity"), testing::HasSubstr("line 1 holds Infinity"));
  EXPECT_THAT(RefusalOfJson("{\"Infinity\": nul}"), testing::HasSubstr("not JSON at byte"));
  EXPECT_THAT(RefusalOfJson("{\"NaN\": \"NaN\" 1}"), testing::HasSubstr("not JSON at byte"));
  EXPECT_EQ(RefusalOfJson("{\"NaN\": \"Infinity\"}"), "");
}

}  // namespace
}  // namespace evald

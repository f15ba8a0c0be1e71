#include "base/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"

namespace evald {
namespace {

std::string Refusal(const std::string& text) {
  try {
    ParseJson(text, "f.json");
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

// Python's json writes these, and people wonder where the file is broken.
TEST(ParseJson, NamesTheLineOfNaNAndInfinity) {
  EXPECT_EQ(Refusal("{\n \"a\": NaN}"),
            "f.json: line 2 holds NaN, which Python's json writes and which is no JSON");
  EXPECT_THAT(Refusal("{\"a\":1,\n\n\"b\":[-Infinity]}"),
              testing::HasSubstr("line 3 holds Infinity"));
  EXPECT_THAT(Refusal("Infinity"), testing::HasSubstr("line 1 holds Infinity"));
  EXPECT_THAT(Refusal("{\"Infinity\": nul}"), testing::HasSubstr("not JSON at byte"));
  EXPECT_THAT(Refusal("{\"NaN\": \"NaN\" 1}"), testing::HasSubstr("not JSON at byte"));
  EXPECT_EQ(Refusal("{\"NaN\": \"Infinity\"}"), "");
}

}  // namespace
}  // namespace evald

#include "base/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

std::string Refusal(const std::string& text) {
  return RefusalOf([&] { ParseJson(text, "f.json"); });
}

// Python's json writes these values. The error must show where in the file they are.
TEST(ParseJson, NamesTheLineOfNaNAndInfinity) {
  EXPECT_EQ(Refusal("{\n \"a\": NaN}"),
            "f.json: line 2 holds NaN, which Python's json writes and which is no JSON; write a "
            "number, or null, in its place");
  EXPECT_THAT(Refusal("{\"a\":1,\n\n\"b\":[-Infinity]}"),
              testing::HasSubstr("line 3 holds Infinity"));
  EXPECT_THAT(Refusal("Infinity"), testing::HasSubstr("line 1 holds Infinity"));
  EXPECT_THAT(Refusal("{\"Infinity\": nul}"), testing::HasSubstr("not JSON at byte"));
  EXPECT_THAT(Refusal("{\"NaN\": \"NaN\" 1}"), testing::HasSubstr("not JSON at byte"));
  EXPECT_EQ(Refusal("{\"NaN\": \"Infinity\"}"), "");
}

}  // namespace
}  // namespace evald

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

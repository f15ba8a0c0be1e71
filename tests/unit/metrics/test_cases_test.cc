// The forms in which data sets keep the tests of programs.
#include "metrics/scoring/test_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

// base64.b64encode(zlib.compress(pickle.dumps(json.dumps(...), protocol))) of CPython 3.11
constexpr const char* kPacked4 =
    "eJxrYJnqzAABPfbR1UqZeQWlJUpWCkoxpQYGqSYKhjF5SjoKSvmlJVBxI4hASWpxSUllQSpIqLgkJTNPqTZ2ih4AIsgWPg"
    "==";
constexpr const char* kPacked2 =
    "eJxrYIqwZ2BgiK5WyswrKC1RslJQiik1MEg1UTCMyVPSUVDKLy2BihtBBEpSi0tKKgtSQULFJSmZeUq1sYUMegDn8hUN";
constexpr const char* kPackedLong =
    "eJxrYJmaxsgABhHxQEZ0tVJmXkFpiZKVglLFKCAaKOkoKOWXlkBDrhLELUktLimpLEgFCRSXpGTmKdXGTtEDAIMOn4c=";
constexpr const char* kPackedList = "eJxrYJnKzQABsVN6WHIyi0umJOoBADLXBYU=";

TestCases Read(const Json& column, const std::string& function = "") {
  TestCases tests;
  tests.function = function;
  AddCases(column, "column 'tests'", &tests);
  return tests;
}

std::string Refused(const Json& column) {
  return Caught([&] { Read(column); }).what();
}

TEST(TestCases, LiveCodeBenchsAreListsInText) {
  const TestCases tests = Read(R"([{"input": "1\n", "output": "2\n", "testtype": "stdin"}])");
  ASSERT_EQ(tests.cases.size(), 1u);
  EXPECT_EQ(tests.cases[0].input, "1\n");
  EXPECT_EQ(tests.cases[0].expected, "2\n");
}

TEST(TestCases, LiveCodeBenchsPrivateOnesArePacked) {
  for (const char* packed : {kPacked4, kPacked2}) {
    const TestCases tests = Read(packed);
    ASSERT_EQ(tests.cases.size(), 1u);
    EXPECT_EQ(tests.cases[0].input, "\u00e4 1\n");
  }
  EXPECT_EQ(Read(kPackedLong).cases.at(0).input, std::string(300, 'x'));
}

TEST(TestCases, FunctionsHaveArguments) {
  const char* const list = R"([{"input": "[1]\n2", "output": "3", "testtype": "functional"}])";
  EXPECT_EQ(Read(list, "add").cases[0].input, "[1]\n2");
  EXPECT_THAT(Refused(list), HasSubstr("nothing names it"));
  EXPECT_EQ(FunctionOf(R"({"func_name": "add"})", "m"), "add");
  EXPECT_EQ(FunctionOf("{}", "m"), "");
  EXPECT_EQ(FunctionOf("", "m"), "");
  EXPECT_EQ(FunctionOf(nullptr, "m"), "");
  EXPECT_THAT(Caught([] { FunctionOf("[]", "column 'm'"); }).what(), HasSubstr("column 'm'"));
}

TEST(TestCases, AppsHasTwoLists) {
  const TestCases tests = Read(R"({"inputs": ["1", ["2", "3"]], "outputs": ["4", "5"]})");
  ASSERT_EQ(tests.cases.size(), 2u);
  EXPECT_EQ(tests.cases[1].input, "2\n3\n");
  const TestCases calls = Read(R"({"fn_name": "f", "inputs": [[1, 2]], "outputs": [3]})");
  EXPECT_EQ(calls.function, "f");
  EXPECT_EQ(calls.cases.at(0).input.dump(), "[1,2]");
}

TEST(TestCases, AnEmptyColumnHasNone) {
  EXPECT_TRUE(Read(nullptr).cases.empty());
  EXPECT_TRUE(Read("").cases.empty());
  EXPECT_TRUE(Read("[]").cases.empty());
}

TEST(TestCases, OtherColumnsAreRefused) {
  EXPECT_THAT(Refused(R"({"inputs": ["1"], "outputs": []})"), HasSubstr("1 inputs and 0 outputs"));
  EXPECT_THAT(Refused(R"([{"input": "1"}])"), HasSubstr("expected tests"));
  EXPECT_THAT(Refused(R"([{"input": 1, "output": "2"}])"), HasSubstr("expected texts"));
  EXPECT_THAT(Refused(5), HasSubstr("column 'tests': found 5"));
  EXPECT_THAT(Refused("no base64!"), HasSubstr("the byte 0x20"));
  EXPECT_THAT(Refused("AAAA"), HasSubstr("the packed bytes are broken"));
  EXPECT_THAT(Refused(kPackedList), HasSubstr("something else than a text"));
  EXPECT_THAT(Refused(std::string(kPacked4).substr(0, 60)), HasSubstr("broken"));
}

}  // namespace
}  // namespace evald

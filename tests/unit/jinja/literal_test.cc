#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "jinja/python_value.h"

namespace evald::jinja {
namespace {

TEST(PythonLiteral, ReadsWhatLiteralEvalReads) {
  const std::pair<const char*, const char*> kCases[] = {
      {"['a', \"b\", 'it\\'s', \"q\\\"\"]", R"(["a","b","it's","q\""])"},
      {"[1, -2, 3.5, 1e3, 0x1f, 1_000]", "[1,-2,3.5,1000.0,31,1000]"},
      {"('a',)", R"(["a"])"},
      {"(1)", "1"},
      {"()", "[]"},
      {"1, 2", "[1,2]"},
      {"{'a': [None, True, False], 'b': {}}", R"({"a":[null,true,false],"b":{}})"},
      {"'a' 'b'", R"("ab")"},
      {"'\\x41\\u00e9\\n\\101'", R"("Aé\nA")"},
      {"r'\\n'", R"("\\n")"},
      {"'''x\ny'''", R"("x\ny")"},
      {"  7", "7"},
      {"[1,\n 2, # comment\n]", "[1,2]"},
  };
  for (const auto& [text, json] : kCases) {
    EXPECT_EQ(PythonLiteral(text), ParseJson(json, "case")) << text;
  }
}

TEST(PythonLiteral, RefusesTheRest) {
  for (const char* text :
       {"", "a", "[1", "1 2", "[1 2]", "007", "'a", "f(1)", "1 + a", "[,]", "{1: 2}", "'a\nb'",
        "\xd9\xa3", "99999999999999999999", "{'a'}", "--", "b'x'"}) {
    EXPECT_THROW(PythonLiteral(text), Error) << text;
  }
  EXPECT_THROW(PythonLiteral(std::string(5000, '[')), Error);
  EXPECT_THROW(PythonLiteral(std::string(5000, '-')), Error);
}

TEST(PythonValue, StrReprAndEquality) {
  EXPECT_EQ(PythonStr(ParseJson(R"(["a'b", 1.0, null, true, {"k": 1e16}])", "t")),
            "[\"a'b\", 1.0, None, True, {'k': 1e+16}]");
  EXPECT_TRUE(PythonEquals(ParseJson(R"({"a":1,"b":[true]})", "t"),
                           ParseJson(R"({"b":[1.0],"a":1})", "t")));
  EXPECT_FALSE(PythonEquals(Json("1"), Json(1)));
  EXPECT_TRUE(PythonIsDigit("12\xc2\xb2"));
  EXPECT_FALSE(PythonIsDigit("1.2"));
  EXPECT_TRUE(EndsWithSpace("a\xc2\xa0"));
  EXPECT_FALSE(EndsWithSpace(""));
}

}  // namespace
}  // namespace evald::jinja

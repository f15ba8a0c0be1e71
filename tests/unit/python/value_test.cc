#include "python/value.h"

#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "python/moment.h"

namespace evald {
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
  EXPECT_FALSE(PythonEquals(Json(9007199254740993), Json(9007199254740992.0)));
  EXPECT_TRUE(PythonEquals(Json(true), Json(1)));
  EXPECT_TRUE(PythonEquals(Json(), Json()));
  EXPECT_FALSE(PythonEquals(Json(), Json(false)));
}

TEST(PythonValue, ShowsMoments) {
  const Json moment = python::MomentToJson({1580464800});
  EXPECT_EQ(PythonStr(moment), "2020-01-31 10:00:00");
  EXPECT_EQ(PythonRepr(Json::array({moment})), "[datetime.datetime(2020, 1, 31, 10, 0)]");
  EXPECT_TRUE(PythonEquals(moment, moment));
  EXPECT_FALSE(PythonEquals(moment, Json()));
}

TEST(PythonValue, QuotesText) {
  EXPECT_EQ(PythonQuoted("a\"'\\\n\x01\u00ad\u3042"), "'a\"\\'\\\\\\n\\x01\\xad\u3042'");
  EXPECT_EQ(PythonQuoted("it's"), "\"it's\"");
}

TEST(PythonValue, RefusesWhatHasNoBoundedText) {
  EXPECT_THROW(PythonRepr(Json(18446744073709551615U)), Error);
  Json deep = 1;
  for (int level = 0; level < 121; ++level) deep = Json::array({std::move(deep)});
  EXPECT_THROW(PythonRepr(deep), Error);
}

}  // namespace
}  // namespace evald

// PythonJson writes the same text as json.dumps of CPython 3.11.
#include "python/json.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace evald {
namespace {

TEST(PythonJson, WritesWhatJsonDumpsWrites) {
  const Json value = {{"a", {1, 2.0, 1e16, 1e-5, true, nullptr}},
                      {"ä\n\x7f", Json::object()},
                      {"e", Json::array()}};
  EXPECT_EQ(PythonJson(value),
            "{\"a\": [1, 2.0, 1e+16, 1e-05, true, null], \"ä\\n\x7f\": {}, \"e\": []}");
  EXPECT_EQ(PythonJsonIndented({{"a", {1}}}), "{\n  \"a\": [\n    1\n  ]\n}");
}

TEST(PythonJson, TakesTheArgumentsOfJsonDumps) {
  PythonJsonStyle style;
  style.ensure_ascii = true;
  style.sort_keys = true;
  style.item_separator = ",";
  style.key_separator = ":";
  EXPECT_EQ(PythonJson({{"z", "\x01\x7f\xc3\xa4\xf0\x9f\x98\x80"}, {"a", {"\"", "\\"}}}, style),
            "{\"a\":[\"\\\"\",\"\\\\\"],\"z\":\"\\u0001\x7f\\u00e4\\ud83d\\ude00\"}");
  style.indent = 0;
  EXPECT_EQ(PythonJson({{"a", {1, 2}}, {"b", Json::array()}}, style),
            "{\n\"a\":[\n1,\n2\n],\n\"b\":[]\n}");
}

TEST(PythonJson, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(PythonJson(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(PythonJson, StopsWhereItsCheckThrows) {
  PythonJsonStyle style;
  style.indent = 64;
  style.check = [](uint64_t bytes) {
    if (bytes > 100) throw std::length_error("too long");
  };
  EXPECT_THROW(PythonJson(Json::parse("[[[[1]]]]"), style), std::length_error);
}

}  // namespace
}  // namespace evald

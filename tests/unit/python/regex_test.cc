// PythonRegex against CPython's `re` (tests/oracle/python_regex.py).
#include "python/regex.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

Json RegexGolden() {
  const std::string path = EVALD_SOURCE_DIR "/tests/golden/metrics/python_regex.json";
  return ParseJson(ReadFile(path), path);
}

int CodePointOffset(std::string_view text, size_t byte) {
  return byte == std::string_view::npos ? -1 : static_cast<int>(CodePoints(text.substr(0, byte)));
}

Json Found(const Regex& regex, const std::string& text) {
  Json matches = Json::array();
  for (const Regex::Match& match : regex.FindAll(text)) {
    Json spans = Json::array();
    for (const Regex::Span& span : match) {
      spans.push_back(CodePointOffset(text, span.begin));
      spans.push_back(span.matched() ? CodePointOffset(text, span.end) : -1);
    }
    matches.push_back(std::move(spans));
  }
  return matches;
}

TEST(PythonRegex, FindsWhatPythonFinds) {
  const Json golden = RegexGolden();
  ASSERT_GT(golden["found"].size(), 100U);
  for (const Json& entry : golden["found"]) {
    const PythonRegex regex(entry[0].get<std::string>());
    std::map<size_t, Json> expected;
    for (const Json& row : entry[1]) expected[row[0].get<size_t>()] = row[1];
    for (size_t i = 0; i < golden["texts"].size(); ++i) {
      const auto found = expected.find(i);
      const Json want = found == expected.end() ? Json::array() : found->second;
      EXPECT_EQ(Found(regex, golden["texts"][i].get<std::string>()), want)
          << "pattern " << entry[0] << " text " << golden["texts"][i];
    }
  }
}

TEST(PythonRegex, RefusesWhatPythonRefuses) {
  const Json golden = RegexGolden();
  ASSERT_GT(golden["refused"].size(), 20U);
  for (const Json& pattern : golden["refused"]) {
    const Error e = Caught([&] { PythonRegex regex(pattern.get<std::string>()); });
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find(pattern.get<std::string>()), std::string::npos);
  }
}

TEST(PythonRegex, AnswersInBoundedTimeOnLongText) {
  const std::string digits(10 << 20, '1');
  size_t matches = 0;
  PythonRegex("(-?[$0-9.,]{2,})|(-?[0-9]+)").ForEachMatch(digits, [&](const Regex::Match&) {
    ++matches;
    return true;
  });
  EXPECT_EQ(matches, 1U);
  EXPECT_EQ(PythonRegex("(?s).*#### ").ReplaceAll(digits, ""), digits);
  EXPECT_EQ(PythonRegex(",").ReplaceAll(std::string(1 << 20, ','), ""), "");
  EXPECT_EQ(PythonRegex("\\.$").ReplaceAll(digits + ".", ""), digits);
}

/// From each `\boxed{`, `[^}]*` passes over the rest of the text without a step back.
TEST(PythonRegex, GivesUpOnEndlessPassingOver) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += "\\boxed{";
  const auto ignore = [](const Regex::Match&) { return true; };
  RegexSteps steps(RegexSteps::Text::kAnswer, 0.2);
  EXPECT_THROW(PythonRegex("\\\\boxed\\{([^}]*)\\}").ForEachMatch(text, ignore, &steps),
               RegexGivenUp);
  RegexSteps others(RegexSteps::Text::kAnswer, 5);
  PythonRegex("(?s).*#### ").ForEachMatch(text, ignore, &others);
  PythonRegex("\\d+|x\\{").ForEachMatch(text, ignore, &others);
}

TEST(PythonRegex, IgnoringCaseMakesNoWordOfAMark) {
  const std::string mark = "\xcd\x85";  // U+0345, whose upper case is a letter
  EXPECT_TRUE(PythonRegex("(?i)\\w").FindAll(mark).empty());
  EXPECT_EQ(PythonRegex("(?i)\\W").FindAll(mark).size(), 1U);
  EXPECT_EQ(PythonRegex("(?i)\\bX\\b").FindAll("x" + mark).size(), 1U);
  EXPECT_EQ(PythonRegex("(?i)\\w+").FindAll("aB c").size(), 2U);
  EXPECT_EQ(PythonRegex("(?i)\\b[a-c]+\\b").FindAll("aB C").size(), 2U);
}

TEST(PythonRegex, GivesUpOnEndlessBacktracking) {
  EXPECT_THROW(PythonRegex("(a+a+)+b").FindAll(std::string(5000, 'a')), Error);
}

}  // namespace
}  // namespace evald

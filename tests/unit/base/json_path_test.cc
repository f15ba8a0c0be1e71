#include "base/json_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

const Json kPathDocument = ParseJson(
    R"({"results": {"scores": [{"value": 0.5}, {"value": 0.25}], "exact_match,none": 1, "a'b": 2,
        "Größe": 3, "with-dash_9": 4, "": 5}, "list": [1, 2, 3], "text": "x"})",
    "the document");

Json ValueAt(const std::string& path) { return JsonPath(path).Find(kPathDocument); }
std::string PathRefusal(const std::string& path) {
  return RefusalOf([&] { ValueAt(path); });
}

TEST(JsonPath, FindsMembersAndElements) {
  EXPECT_EQ(ValueAt("$"), kPathDocument);
  EXPECT_EQ(ValueAt("$.results.scores[0].value"), 0.5);
  EXPECT_EQ(ValueAt("$.results.scores[-1].value"), 0.25);
  EXPECT_EQ(ValueAt("$['results']['exact_match,none']"), 1);
  EXPECT_EQ(ValueAt("$[\"results\"]['a\\'b']"), 2);
  EXPECT_EQ(ValueAt("$.results.Größe"), 3);
  EXPECT_EQ(ValueAt("$.results.with-dash_9"), 4);
  EXPECT_EQ(ValueAt("$.results['']"), 5);
  EXPECT_EQ(ValueAt("$.list[2]"), 3);
}

TEST(JsonPath, NamesThePartThatIsNotThere) {
  EXPECT_EQ(
      PathRefusal("$.results.score[0].value"),
      "there is no $.results.score: $.results is an object with 'scores', 'exact_match,none', "
      "'a'b', 'Größe', 'with-dash_9', ''");
  EXPECT_EQ(PathRefusal("$.list[3]"), "there is no $.list[3]: $.list is a list of 3 elements");
  EXPECT_EQ(PathRefusal("$.list[-4]"), "there is no $.list[-4]: $.list is a list of 3 elements");
  EXPECT_EQ(PathRefusal("$.text.length"), "there is no $.text.length: $.text is \"x\"");
  EXPECT_EQ(PathRefusal("$.list.a"), "there is no $.list.a: $.list is a list of 3 elements");
  EXPECT_EQ(PathRefusal("$.results[0]").find("there is no $.results[0]: $.results is an object"),
            0U);
}

TEST(JsonPath, RefusesOtherTextsAndSaysWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "character 1: expected '$'"},
      {"results", "character 1: expected '$'"},
      {"$x", "character 2: expected '.' or '['"},
      {"$.", "character 3: expected a member's name"},
      {"$..a", "character 3: expected a member's name"},
      {"$.*", "character 3: expected a member's name"},
      {"$[", "character 3: expected an element's number"},
      {"$[*]", "character 3: expected an element's number"},
      {"$[?(@.a)]", "character 3: expected an element's number"},
      {"$[0", "character 4: expected ']'"},
      {"$[0:2]", "character 4: expected ']'"},
      {"$['a]", "character 6: the quoted name has no end"},
      {"$['a'", "character 6: expected ']'"},
      {"$.ä.", "character 5: expected a member's name"},
      {"$[99999999999999999999]", "character 3: expected an element's number"},
      {"$.a b", "character 4: expected '.' or '['"},
  };
  for (const auto& [path, problem] : cases)
    EXPECT_THAT(PathRefusal(path), HasSubstr(problem)) << path;
}

TEST(JsonPath, HasALimit) {
  std::string path = "$";
  for (int i = 0; i < 201; ++i) path += ".a";
  EXPECT_THAT(PathRefusal(path), HasSubstr("more than 200 steps"));
}

}  // namespace
}  // namespace evald

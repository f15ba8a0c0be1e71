#include "base/json_walk.h"

#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {
namespace {

// A text that is at hand only three bytes at a time.
class Drops : public LongText {
 public:
  explicit Drops(std::string_view text) : text_(text) {}
  std::string_view From(uint64_t offset) override {
    return offset < text_.size() ? text_.substr(offset, 3) : std::string_view();
  }

 private:
  std::string_view text_;
};

bool IsValue(const std::string& text) {
  Drops drops(text);
  try {
    JsonWalk(&drops, "text").Value({0, text.size()});
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return false;
  }
}

// The value again, from its parts.
Json Again(JsonWalk* walk, TextSpan value) {
  const char first = walk->FirstOf(value);
  if (first == '{') {
    Json object = Json::object();
    walk->Members(
        value, [&](const std::string& key, TextSpan member) { object[key] = Again(walk, member); });
    return object;
  }
  if (first == '[') {
    Json list = Json::array();
    walk->Items(value, [&](TextSpan item) { list.push_back(Again(walk, item)); });
    return list;
  }
  return walk->Parse(value, 100);
}

TEST(JsonWalk, FindsEachValueWhateverIsAtHand) {
  const std::string text =
      " {\"a\\u00e9\\\"\": [1, -2.5e+3, true, false, null, [], {}, [[\"]}\\\\\"]]],\n"
      "\"b\" :{\"c\":\"x\",\"d\":[{}]} , \"\":0}\r\n";
  Drops drops(text);
  JsonWalk walk(&drops, "text");
  EXPECT_EQ(Again(&walk, walk.Value({0, text.size()})), Json::parse(text));
}

TEST(JsonWalk, RefusesWhatIsNoJson) {
  for (const char* text : {"0", "-0.5", "\"\"", "[]", "{}", " [1 , 2] ", "{\"a\":{\"b\":[]}}"})
    EXPECT_TRUE(IsValue(text)) << text;
  for (const char* text :
       {"",          " ",     "[",   "]",        "[1",          "[1,",        "[1,]",
        "[,1]",      "[1 2]", "{",   "{\"a\"}",  "{\"a\":}",    "{\"a\":1,}", "{1:2}",
        "{\"a\":1]", "[1}",   "\"",  "\"\\x\"",  "\"\\u12g4\"", "\"\n\"",     "01",
        "1.",        "1e",    "-",   "+1",       "tru",         "nul",        "NaN",
        "1 2",       "[] []", "\"a", "{\"a\" 1}"})
    EXPECT_FALSE(IsValue(text)) << text;
}

TEST(JsonWalk, TakesAsManyLevelsAsTheParser) {
  EXPECT_TRUE(IsValue(std::string(200, '[') + std::string(200, ']')));
  EXPECT_FALSE(IsValue(std::string(201, '[') + std::string(201, ']')));
  EXPECT_FALSE(IsValue(std::string(100'000, '[')));
}

TEST(JsonWalk, HoldsNoLongValueOrKey) {
  const std::string text = "{\"" + std::string(2000, 'k') + "\":\"" + std::string(200, 'v') + "\"}";
  TextInMemory memory(text);
  JsonWalk walk(&memory, "text");
  int members = 0;
  walk.Members({0, text.size()}, [&](const std::string& key, TextSpan value) {
    EXPECT_EQ(key, "");
    EXPECT_EQ(value.bytes(), 202u);
    EXPECT_THROW(walk.Parse(value, 201), Error);
    ++members;
  });
  EXPECT_EQ(members, 1);
}

}  // namespace
}  // namespace evald

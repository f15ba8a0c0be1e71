#include "base/placeholders.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

const std::map<std::string, std::string> kValues = {{"model", "m"}, {"base_url", "http://x/v1"}};

TEST(Placeholders, AreReplaced) {
  EXPECT_EQ(ReplacePlaceholders("model={model},url={base_url}/chat", kValues),
            "model=m,url=http://x/v1/chat");
  EXPECT_EQ(ReplacePlaceholders("{model}{model}", kValues), "mm");
}

TEST(Placeholders, OtherBracesStay) {
  for (const char* text : {R"({"a": {"b": 1}})", "{", "}", "{}", "{ model }", "{Model}", "{model",
                           "${HOME}", "{1}", ""}) {
    EXPECT_EQ(ReplacePlaceholders(text, kValues), text);
    EXPECT_EQ(UnknownPlaceholder(text, {"model"}), "") << text;
  }
}

TEST(Placeholders, DoubledBracesStandForTheText) {
  EXPECT_EQ(ReplacePlaceholders("{{model}} {{other}} {{", kValues), "{model} {other} {{");
  EXPECT_EQ(ReplacePlaceholders("{{{model}}}", kValues), "{{model}}");
  EXPECT_EQ(UnknownPlaceholder("{{other}}", {"model"}), "");
}

TEST(Placeholders, ValuesAreNotLookedThrough) {
  EXPECT_EQ(ReplacePlaceholders("{a}", {{"a", "{b}"}, {"b", "c"}}), "{b}");
}

TEST(Placeholders, TheFirstUnknownOneIsNamed) {
  EXPECT_EQ(UnknownPlaceholder("{model} {modle} {x}", {"model"}), "modle");
}

}  // namespace
}  // namespace evald

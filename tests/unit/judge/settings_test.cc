// Where a judge is asked.
#include "metrics/judge/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

TEST(JudgeSettings, TheUrlIsThatOfTheApi) {
  const auto url = [](const char* text) {
    return JudgeSettingsFromJson({{"base_url", text}, {"model", "m"}}, "judge").base_url;
  };
  EXPECT_EQ(url("http://h:8000"), "http://h:8000/v1");
  EXPECT_EQ(url("http://h:8000/"), "http://h:8000/v1");
  EXPECT_EQ(url("http://h:8000/v1/"), "http://h:8000/v1");
  EXPECT_EQ(url("https://h/openai/v2"), "https://h/openai/v2");
}

TEST(JudgeSettings, WhatIsWrongIsNamed) {
  const Json good = {{"base_url", "http://h:1/v1"}, {"model", "m"}};
  const auto refusal = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return CaughtText([&] { JudgeSettingsFromJson(json, "judge"); }, ErrorKind::kUsage);
  };
  EXPECT_EQ(refusal("retries", 3), "");
  EXPECT_THAT(refusal("url", "x"), HasSubstr("judge: unknown key 'url'"));
  EXPECT_THAT(refusal("base_url", nullptr), HasSubstr("key 'base_url': absent"));
  EXPECT_THAT(refusal("model", nullptr), HasSubstr("key 'model': absent"));
  EXPECT_THAT(refusal("base_url", "ftp://h"), HasSubstr("expected http://host"));
  EXPECT_THAT(refusal("base_url", "http://me:secret@h/v1"), HasSubstr("a user, a password"));
  EXPECT_EQ(refusal("base_url", "http://me:secret@h/v1").find("secret"), std::string::npos);
  EXPECT_THAT(refusal("concurrency", 0), HasSubstr("expected an integer from 1 to 1024"));
  EXPECT_THAT(refusal("timeout_s", 1e9), HasSubstr("expected a number from 0.1 to 3600"));
  EXPECT_THAT(refusal("temperature", "0"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("max_tokens", 1.5), HasSubstr("expected an integer"));
  EXPECT_THAT(CaughtText([] { JudgeSettingsFromJson(Json::array(), "judge"); }),
              HasSubstr("expected a mapping"));
}

// A key goes to the server that it is for.
TEST(JudgeSettings, AnotherServerGetsNoKeyOfTheRuns) {
  const Json run = {{"base_url", "http://a/v1"}, {"model", "m"}, {"api_key_env", "KEY"}};
  EXPECT_EQ(MergedJudge(run, {{"model", "n"}})["api_key_env"], "KEY");
  const Json other = MergedJudge(run, {{"base_url", "http://b/v1"}});
  EXPECT_FALSE(other.contains("api_key_env"));
  EXPECT_EQ(other["model"], "m");
  EXPECT_EQ(MergedJudge(run, {{"base_url", "http://b/v1"}, {"api_key_env", "B"}})["api_key_env"],
            "B");
  EXPECT_EQ(MergedJudge(run, nullptr), run);
  EXPECT_EQ(MergedJudge(nullptr, run), run);
  EXPECT_TRUE(MergedJudge(nullptr, nullptr).is_null());
}

}  // namespace
}  // namespace evald

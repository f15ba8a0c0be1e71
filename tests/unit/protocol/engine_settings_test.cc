#include "protocol/engine_settings.h"

#include <gtest/gtest.h>

#include <set>

namespace evald {
namespace {

TEST(EngineSettings, EveryKeyOfAnEngineIsThereOnce) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const EngineSetting& setting : EngineSettings()) {
    EXPECT_TRUE(seen.emplace(setting.engine, setting.key).second) << setting.engine << " " << setting.key;
  }
  EXPECT_EQ(EngineNames(), (std::vector<std::string>{"native", "openai", "replay", "emulated"}));
  EXPECT_EQ(SettingKeys("replay"), std::vector<std::string>{"generations"});
  EXPECT_TRUE(SettingKeys("none").empty());
}

TEST(EngineSettings, AUrlNamesOneServerAndNothingElse) {
  for (const char* good : {"http://gpu1:8000", "https://h.example/v1/", "http://[::1]:9/a.b/..c", ""}) {
    EXPECT_EQ(ExpectedInstead(SettingUse::kUrl, good), "") << good;
  }
  for (const char* bad : {"gpu1:8000", "ftp://h", "http://", "http:///x", "http://known@evil", "http://h/../x", "http://h/a/./b",
                          "http://h/%2e%2e/x", "http://h/a?b", "http://h/a#b", "http://h\\@evil", "http://h /", "http://h\n"}) {
    EXPECT_NE(ExpectedInstead(SettingUse::kUrl, bad), "") << bad;
  }
}

TEST(EngineSettings, APathOnTheServerStaysThere) {
  for (const char* good : {"/health", "/v1/models?x=..", "/"}) EXPECT_EQ(ExpectedInstead(SettingUse::kUrlPath, good), "") << good;
  // After "http://known:8000" the first two would call another server.
  for (const char* bad : {"@evil.example/x", ".evil.example", "health", "/../x", "/a/..", "/%2e%2e/x", "/a b", "/\r\n"}) {
    EXPECT_NE(ExpectedInstead(SettingUse::kUrlPath, bad), "") << bad;
  }
}

TEST(EngineSettings, WhatIsAbsentOrOfAnotherTypeIsForTheEngineToSay) {
  for (const Json& value : {Json(), Json(3), Json::array()}) EXPECT_EQ(ExpectedInstead(SettingUse::kUrl, value), "");
}

}  // namespace
}  // namespace evald

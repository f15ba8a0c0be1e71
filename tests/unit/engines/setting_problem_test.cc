#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engines/engines.h"

namespace evald {
namespace {

TEST(EngineSettings, AUrlNamesOneServerAndNothingElse) {
  for (const char* good :
       {"http://gpu1:8000", "https://h.example/v1/", "http://[::1]:9/a.b/..c", ""}) {
    EXPECT_EQ(ExpectedInstead(SettingUse::kUrl, good), "") << good;
  }
  for (const char* bad : {"gpu1:8000", "ftp://h", "http://", "http:///x", "http://known@evil",
                          "http://h/../x", "http://h/a/./b", "http://h/%2e%2e/x", "http://h/a?b",
                          "http://h/a#b", "http://h\\@evil", "http://h /", "http://h\n"}) {
    EXPECT_NE(ExpectedInstead(SettingUse::kUrl, bad), "") << bad;
  }
}

TEST(EngineSettings, APathOnTheServerStaysThere) {
  for (const char* good : {"/health", "/v1/models?x=..", "/"})
    EXPECT_EQ(ExpectedInstead(SettingUse::kUrlPath, good), "") << good;
  // After "http://known:8000" the first two would name another server.
  for (const char* bad : {"@evil.example/x", ".evil.example", "health", "/../x", "/a/..",
                          "/v1/..;/x", "/.;a=b/x", "/%2e%2e/x", "/a b", "/\r\n"}) {
    EXPECT_NE(ExpectedInstead(SettingUse::kUrlPath, bad), "") << bad;
  }
}

TEST(EngineSettings, WhatIsAbsentHasNoFormAndWhatIsNoTextHasTheWrongOne) {
  for (const SettingUse use :
       {SettingUse::kReadPath, SettingUse::kUrl, SettingUse::kUrlPath, SettingUse::kVariable}) {
    EXPECT_EQ(ExpectedInstead(use, Json()), "");
    EXPECT_EQ(ExpectedInstead(use, ""), "");
    for (const Json& value : {Json(3), Json(true), Json::array(), Json::object()})
      EXPECT_NE(ExpectedInstead(use, value), "") << value;
  }
}

std::vector<std::pair<std::string, EngineSetting>> AllSettings() {
  std::vector<std::pair<std::string, EngineSetting>> all;
  for (const EngineKind& kind : Engines()) {
    for (const EngineSetting& setting : kind.settings) all.emplace_back(kind.name, setting);
  }
  return all;
}

// An example of each setting that its engine accepts.
Json Example(const EngineSetting& setting) {
  switch (setting.form) {
    case SettingForm::kSwitch:
      return true;
    case SettingForm::kInteger:
      return 2;
    case SettingForm::kNumber:
      return 0.5;
    case SettingForm::kText:
      return setting.use == SettingUse::kUrl       ? "http://h"
             : setting.use == SettingUse::kUrlPath ? "/health"
                                                   : "some_text";
    case SettingForm::kWord:
      return setting.words.front();
    case SettingForm::kBytes:
      return "2GiB";
    case SettingForm::kTexts:
      return {"server", "{port}"};
    case SettingForm::kVariables:
      return {{"A", "1"}};
    case SettingForm::kMembers:
      return {{"top_k", {1, {{"a", nullptr}}}}};
    case SettingForm::kFactors:
      return {{"cpu:1", 10}};
    case SettingForm::kRange:
      return {1, 2};
  }
  return nullptr;
}

bool Takes(const EngineSetting& setting, const Json& value) {
  return ExpectedInstead(setting, value).empty();
}

TEST(EngineSettings, EachTakesItsOwnTypeAndNull) {
  for (const auto& [engine, setting] : AllSettings()) {
    EXPECT_TRUE(Takes(setting, Example(setting))) << engine << " " << setting.key;
    EXPECT_TRUE(Takes(setting, nullptr)) << engine << " " << setting.key;
  }
}

TEST(EngineSettings, NoneTakesAValueOfAnotherType) {
  const Json values = {5, 0.5, "\u0001", true, {nullptr}, {{"", nullptr}}};
  for (const auto& [engine, setting] : AllSettings()) {
    for (const Json& value : values) {
      if (value.type() == Example(setting).type()) continue;
      const bool number = value.is_number_integer() && setting.form == SettingForm::kRange;
      const bool bytes = value.is_number_integer() && setting.form == SettingForm::kBytes;
      const bool within =
          value.is_number() && Example(setting).is_number_float() && value <= setting.most;
      EXPECT_EQ(Takes(setting, value), number || bytes || within)
          << engine << " " << setting.key << " " << value;
    }
  }
}

TEST(EngineSettings, NumbersHaveBothTheirEnds) {
  for (const auto& [engine, setting] : AllSettings()) {
    const bool integer =
        setting.form == SettingForm::kInteger || setting.form == SettingForm::kRange;
    if (!integer && setting.form != SettingForm::kNumber) continue;
    const auto number = [&](double value) {
      return integer ? Json(static_cast<int64_t>(value)) : Json(value);
    };
    EXPECT_TRUE(Takes(setting, number(setting.least)) && Takes(setting, number(setting.most)))
        << setting.key;
    EXPECT_FALSE(Takes(setting, number(setting.least - 1)) ||
                 Takes(setting, number(setting.most + 1)))
        << setting.key;
    EXPECT_FALSE(Takes(setting, UINT64_MAX) || Takes(setting, INT64_MIN)) << setting.key;
    EXPECT_FALSE(Takes(setting, 1e300) || Takes(setting, std::nan("")) || Takes(setting, HUGE_VAL))
        << setting.key;
  }
}

std::string Problem(const std::string& engine, const Json& settings) {
  const auto found = FindSettingProblem(engine, settings);
  return found ? found->key + ": " + found->problem + "; " + found->remedy : "";
}

TEST(EngineSettings, WhatLiesWithinAValueIsLookedAt) {
  const auto openai = [](Json changes) {
    Json settings = {{"base_url", "http://h"}};
    settings.update(changes);
    return Problem("openai", settings);
  };
  EXPECT_EQ(openai({{"environment", {{"A", "1"}}}, {"extra_body", {{"a", {1, 2}}}}}), "");
  for (const Json& environment : {Json{{"A", 1}}, Json{{"A", nullptr}}, Json{{"", "1"}},
                                  Json{{"A=B", "1"}}, Json{{"A", std::string("\0", 1)}}}) {
    EXPECT_NE(openai({{"environment", environment}}), "") << environment;
  }
  EXPECT_NE(Problem("openai", {{"command", {"server", 8000}}}), "");
  EXPECT_NE(Problem("openai", {{"command", {"server", {"--port"}}}}), "");
  EXPECT_NE(Problem("emulated", {{"slow", {{"cpu:1", "10"}}}}), "");
  EXPECT_NE(Problem("emulated", {{"slow", {{"cpu:1", 0}}}}), "");
  for (const Json& range :
       {Json{2, 1}, Json{1}, Json{1, 2, 3}, Json{-1, 2}, Json{1, "2"}, Json(-1)}) {
    EXPECT_NE(Problem("emulated", {{"tokens_out", range}}), "") << range;
  }
  for (const char* size : {"lots", "0", "-1GiB", "1e30", "nan"})
    EXPECT_NE(Problem("native", {{"kv_cache", size}}), "") << size;
}

TEST(EngineSettings, AProblemNamesTheKeyAndWhatWasFoundExpectedAndToDo) {
  EXPECT_EQ(Problem("replay", {{"generations", 5}}),
            "generations: found 5, expected a path; docs/engines.md says what each setting of "
            "engine 'replay' takes");
  EXPECT_EQ(Problem("openai", {{"base_url", "http://h"}, {"model", 5}}),
            "model: found 5, expected a string; put it in quotes");
  EXPECT_EQ(Problem("emulated", {{"dealy_ms", 3}})
                .rfind("dealy_ms: unknown key; did you mean 'delay_ms'?", 0),
            0u);
  EXPECT_EQ(Problem("native", Json(5)).rfind(": the settings are 5, expected an object", 0), 0u);
  EXPECT_LT(Problem("native", {{"kernels", std::string(5000, 'x')}}).size(), 400u);
}

TEST(EngineSettings, WhatAnEngineCannotWorkWithoutIsMissed) {
  for (const Json& none :
       {Json(), Json::object(), Json{{"generations", nullptr}}, Json{{"generations", ""}}}) {
    EXPECT_EQ(Problem("replay", none).rfind("generations: found nothing", 0), 0u) << none;
  }
  EXPECT_EQ(Problem("openai", Json()).rfind("command: found nothing", 0), 0u);
  EXPECT_EQ(
      Problem("openai", {{"command", Json::array()}, {"base_url", ""}}).rfind("command: found", 0),
      0u);
  EXPECT_EQ(
      Problem("openai", {{"command", {"s"}}, {"base_url", "http://h"}}).rfind("base_url: found", 0),
      0u);
  EXPECT_EQ(Problem("openai", {{"command", Json::array()}, {"base_url", "http://h"}}), "");
  EXPECT_EQ(Problem("native", Json()) + Problem("emulated", Json()), "");
}

TEST(EngineSettings, AllTogetherAreBounded) {
  const auto problem = [](size_t bytes) {
    return FindSettingProblem("emulated", {{"text", std::string(bytes, 'x')}});
  };
  EXPECT_FALSE(problem(kSettingsBytesMax - 20));
  const auto wrong = problem(kSettingsBytesMax);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->problem, "the settings are 12299 bytes as JSON, expected at most 12288");
}

TEST(EngineSettings, NoTimeIsLongerThanADay) {
  const std::pair<const char*, double> longest[] = {{"ready_seconds", 86'400},
                                                    {"request_seconds", 86'400},
                                                    {"connect_seconds", 3600},
                                                    {"load_seconds", 3600},
                                                    {"delay_ms", 3'600'000}};
  std::set<std::string> found;
  for (const auto& [engine, setting] : AllSettings()) {
    const std::string key = setting.key;
    for (const auto& [known, most] : longest) {
      if (key != known) continue;
      found.insert(key);
      EXPECT_TRUE(Takes(setting, most)) << key;
      EXPECT_FALSE(Takes(setting, most + 1)) << key;
    }
    const bool is_time = key.ends_with("_seconds") || key.ends_with("_ms");
    EXPECT_FALSE(is_time && Takes(setting, 86'400'001))
        << key << " holds a device for as long as it likes";
  }
  EXPECT_EQ(found.size(), std::size(longest));
}

}  // namespace
}  // namespace evald

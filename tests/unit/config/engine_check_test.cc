#include "orchestrator/config/engine_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/engines.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Problem(const std::string& engine, const std::vector<std::string>& set = {},
                    const std::string& binaries = EVALD_BINARY_DIR) {
  return CaughtText([&] {
    const EvalConfig config = ParseEvalConfig("tasks: [gsm8k]\ncheckpoint: /\nengine:\n" + engine,
                                              "/somewhere/eval.yaml", {set, ""});
    CheckEngineSettings(config, binaries);
  });
}

TEST(EngineCheck, SettingsAreReadAsTheWorkerReadsThem) {
  EXPECT_EQ(Problem("  name: emulated\n  delay_ms: 3\n"), "");
  EXPECT_EQ(Problem("  name: native\n  kv_cache: 1GiB\n"), "");
  EXPECT_EQ(Problem("  name: openai\n  base_url: http://127.0.0.1:9/v1\n"), "");
}

TEST(EngineCheck, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_THAT(Problem("  name: emulated\n  dealy_ms: 3\n"),
              StartsWith("/somewhere/eval.yaml:5: key 'engine.dealy_ms': unknown key; did you mean "
                         "'delay_ms'?"));
  EXPECT_THAT(Problem("  name: emulated\n", {"engine.jitter=2"}),
              StartsWith("--set engine.jitter=2: key 'engine.jitter': found 2, expected"));
  EXPECT_THAT(Problem("  name: native\n  treads: 3\n"),
              StartsWith("/somewhere/eval.yaml:5: key 'engine.treads': unknown key; "));
  EXPECT_THAT(
      Problem("  name: native\n  kv_cache: lots\n"),
      StartsWith("/somewhere/eval.yaml:5: key 'engine.kv_cache': found \"lots\", expected"));
  EXPECT_THAT(Problem("  name: native\n  kernels: mmx\n"),
              StartsWith("/somewhere/eval.yaml:5: key 'engine.kernels': found \"mmx\", expected"));
  EXPECT_THAT(Problem("  name: openai\n"),
              StartsWith("/somewhere/eval.yaml:3: key 'engine.command': found nothing"));
  EXPECT_THAT(Problem("  name: replay\n  generations: /nowhere\n"),
              StartsWith("/somewhere/eval.yaml:5: key 'engine.generations': found \"/nowhere\""));
}

// The list and the worker say the same of one value of one setting.
void ExpectAgreement(const EngineKind& kind, const EngineSetting& setting, const Json& value) {
  EvalConfig config;
  config.engine.name = kind.name;
  config.engine.settings[setting.key] = value;
  if (config.engine.name == "openai" && std::string(setting.key) != "command")
    config.engine.settings.emplace("base_url", "http://h");
  if (config.engine.name == "replay") config.engine.settings.emplace("generations", "/");
  std::string said;
  try {
    CheckEngineSettings(config, EVALD_BINARY_DIR);
  } catch (const Error& e) {
    said = e.message();
  }
  const auto listed = FindSettingProblem(kind.name, config.engine.settings);
  const std::string text =
      fmt::format("{} {}: {}; the worker says '{}'", kind.name, setting.key, value.dump(), said);
  // Paths and variables of this form may be absent here, which no list knows.
  const bool looked_up =
      setting.use == SettingUse::kReadPath || setting.use == SettingUse::kVariable;
  if (listed) {
    EXPECT_THAT(said, HasSubstr(fmt::format("'engine.{}': {}", listed->key, listed->problem)))
        << text;
  } else if (!looked_up) {
    EXPECT_EQ(said, "") << text;
  }
}

// Faults that the value of a setting shows: the list finds them, and so does the program that reads
// the setting.
TEST(EngineCheck, TheListAndTheEnginesAgreeOnEveryWrongValueOfEverySetting) {
  const Json values = {5,
                       -1,
                       0.5,
                       1e300,
                       UINT64_MAX,
                       "",
                       "mmx",
                       true,
                       Json::array(),
                       {nullptr},
                       {"a", 5},
                       Json::object(),
                       {{"a", nullptr}}};
  for (const EngineKind& kind : Engines()) {
    for (const EngineSetting& setting : kind.settings) {
      for (const Json& value : values) ExpectAgreement(kind, setting, value);
    }
  }
}

TEST(EngineCheck, AWorkerThatCannotBeAskedIsNotTheFilesFault) {
  EXPECT_THAT(Problem("  name: native\n", {}, "/nowhere"), HasSubstr("/nowhere/evald-worker"));
  EXPECT_THAT(Problem("  name: native\n", {}, "/nowhere"), Not(HasSubstr("eval.yaml")));
}

}  // namespace
}  // namespace evald

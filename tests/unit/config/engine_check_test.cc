#include "orchestrator/config/engine_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Problem(const std::string& engine, const std::vector<std::string>& set = {},
                    const std::string& binaries = EVALD_BINARY_DIR) {
  try {
    const EvalConfig config = ParseEvalConfig("tasks: [gsm8k]\ncheckpoint: /\nengine:\n" + engine,
                                              "/somewhere/eval.yaml", {set, ""});
    CheckEngineSettings(config, binaries);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
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
              StartsWith("/somewhere/eval.yaml:5: key 'engine.kernels': found 'mmx', expected"));
  EXPECT_THAT(Problem("  name: openai\n"),
              StartsWith("/somewhere/eval.yaml:3: key 'engine.command': found nothing"));
  EXPECT_THAT(Problem("  name: replay\n  generations: /nowhere\n"),
              StartsWith("/somewhere/eval.yaml:5: key 'engine.generations': found \"/nowhere\""));
}

TEST(EngineCheck, AWorkerThatCannotBeAskedIsNotTheFilesFault) {
  EXPECT_THAT(Problem("  name: native\n", {}, "/nowhere"), HasSubstr("/nowhere/evald-worker"));
  EXPECT_THAT(Problem("  name: native\n", {}, "/nowhere"), Not(HasSubstr("eval.yaml")));
}

}  // namespace
}  // namespace evald

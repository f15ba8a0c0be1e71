// The parity check by texts, for servers that do not score.
#include "worker/parity/continuations.h"

#include <gtest/gtest.h>

#include "tests/unit/native/native_test_util.h"
#include "worker/parity/parity_check.h"

namespace evald::parity {
namespace {

std::filesystem::path ExampleStep(const std::string& name) {
  return std::filesystem::path(EVALD_SOURCE_DIR) / "examples/quickstart/checkpoints" / name;
}

// The verdict on an engine that has loaded `served` with these kernels, where the example's last
// checkpoint was staged. It gets texts.
Report ReportOn(const std::filesystem::path& served, const std::string& kernels) {
  ParityCheck check(std::chrono::minutes(5), 1);
  check.Begin(ExampleStep("step-01200"), NumberType::kBf16, true);
  const auto engine = native::LoadedEngine(served, {{"kernels", kernels}});
  return check.CheckTexts([&](const std::string& prompt, int tokens) {
    Request request;
    request.context = prompt;
    request.sampling.max_gen_toks = tokens;
    return native::AnswerAll(engine.get(), {request})[0].text;
  });
}

TEST(Continuations, OfTheSameWeightsAgree) {
  for (const char* kernels : {"auto", "portable", "rounded_bf16"}) {
    const Report report = ReportOn(ExampleStep("step-01200"), kernels);
    EXPECT_EQ(report.outcome, Report::Outcome::kAgrees) << kernels << ": " << report.reason;
    EXPECT_GE(report.texts, 3);
  }
}

TEST(Continuations, OfOtherWeightsDiffer) {
  const Report report = ReportOn(ExampleStep("step-00100"), "rounded_bf16");
  EXPECT_EQ(report.outcome, Report::Outcome::kDiffers);
  EXPECT_NE(report.reason.find("it continues \""), std::string::npos) << report.reason;
  EXPECT_NE(report.causes.find("temperature 0"), std::string::npos);
}

TEST(Continuations, MayDifferInLessThanHalf) {
  const std::vector<Continuation> expected = {{"p", "a"}, {"q", "b"}, {"r", "c"}, {"s", "d"}};
  EXPECT_EQ(Different(expected, {"a", "b", "x", "x"}), "");
  EXPECT_EQ(Different(expected, {"a", "x", "y", "z"}),
            "only 1 of 4 texts are those of evald's own engine: it continues \"q\" by \"x\", where "
            "evald's own engine has \"b\"");
}

}  // namespace
}  // namespace evald::parity

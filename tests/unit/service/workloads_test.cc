#include "orchestrator/service/workloads.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(WorkloadsTest, ARunsPlanIsTheMostThatWasSeenOfIt) {
  Workloads workloads;
  EXPECT_EQ(workloads.Expected("mmlu"), std::nullopt);
  workloads.Saw("mmlu", 1, 100);
  workloads.Saw("mmlu", 1, 120);  // the estimate was corrected
  workloads.Saw("mmlu", 1, 30);   // most of it is done
  EXPECT_EQ(workloads.Expected("mmlu"), 120);
  EXPECT_EQ(workloads.Expected("gsm8k"), std::nullopt);
}

TEST(WorkloadsTest, TheNewestRunCounts) {
  Workloads workloads;
  workloads.Saw("mmlu", 1, 100);
  workloads.Saw("mmlu", 2, 80);
  EXPECT_EQ(workloads.Expected("mmlu"), 80);
}

TEST(WorkloadsTest, ThoseThatWereNotSeenForLongestAreForgotten) {
  Workloads workloads;
  workloads.Saw("kept", 1, 1);
  for (size_t i = 0; i < Workloads::kKept; ++i) {
    if (i == Workloads::kKept / 2) workloads.Saw("kept", 1, 1);
    workloads.Saw(std::to_string(i), 2, 2);
  }
  EXPECT_EQ(workloads.Expected("kept"), 1);
  EXPECT_EQ(workloads.Expected("0"), std::nullopt);
  EXPECT_EQ(workloads.Expected("1"), 2);
}

class WorkloadOfTest : public testing::Test {
 protected:
  static std::string Of(const std::string& checkpoint, const std::string& tasks,
                        const std::string& more = "") {
    EvalOverrides overrides;
    overrides.folders = EvalOverrides::Folders::kJudged;
    const std::string text = "checkpoint: " + checkpoint + "\ntasks: " + tasks +
                             "\nengine: {name: native}\n" + more + "\n";
    return WorkloadOf(ParseEvalConfig(text, "/nowhere/eval.yaml", overrides));
  }
};

TEST_F(WorkloadOfTest, CheckpointsOfOneFolderHaveTheSame) {
  const std::string first = Of("/runs/a/step-100", "[gsm8k]");
  EXPECT_EQ(first, Of("/runs/a/step-200", "[gsm8k]", "name: another"));
  EXPECT_EQ(first, Of("/runs/a/step-200", "[gsm8k]", "output: {dir: elsewhere}"));
  EXPECT_NE(first, Of("/runs/b/step-100", "[gsm8k]"));
  EXPECT_NE(first, Of("/runs/a/step-100", "[gsm8k, mbpp]"));
  EXPECT_NE(first, Of("/runs/a/step-100", "[{task: gsm8k, limit: 10}]"));
}

}  // namespace
}  // namespace evald

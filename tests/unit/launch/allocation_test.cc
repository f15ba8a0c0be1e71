// The allocation in which a process runs, as Slurm's variables describe it.
#include "orchestrator/launch/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "evald/error.h"
#include "orchestrator/launch/step.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::optional<Allocation> Here(const std::map<std::string, std::string>& variables) {
  return AllocationHere([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Allocation, OutsideThereIsNone) {
  EXPECT_FALSE(Here({}));
  EXPECT_FALSE(Here({{"SLURM_JOB_ID", ""}}));
}

TEST(Allocation, AScriptRunsOnItsFirstNode) {
  const auto found = Here({{"SLURM_JOB_ID", "4711"},
                           {"SLURM_JOB_NUM_NODES", "3"},
                           {"SLURMD_NODENAME", "n1"},
                           {"SLURM_JOB_END_TIME", "1700000000"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->job, "4711");
  EXPECT_EQ(found->nodes, 3);
  EXPECT_TRUE(found->on_node);
  EXPECT_EQ(found->ends_at, 1700000000);
}

TEST(Allocation, AShellOfSallocMayRunElsewhere) {
  const auto found = Here({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NUM_NODES", "1"}});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->on_node);
  EXPECT_EQ(found->ends_at, 0);
}

TEST(Allocation, SeveralTasksOfSrunWouldEachEvaluateAll) {
  EXPECT_THAT(CaughtText([] { Here({{"SLURM_JOB_ID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}); },
                         ErrorKind::kUsage),
              HasSubstr("srun starts this command 4 times"));
}

TEST(Allocation, TheStepHasAnAgentOnEachNodeAndNoSecret) {
  const StepCall call = StepOf({.job = "7", .nodes = 3}, "/opt/evald", {"--threads", "2"}, "/log");
  EXPECT_THAT(call.arguments, Contains("--ntasks=3"));
  EXPECT_THAT(call.arguments, Contains("--ntasks-per-node=1"));
  EXPECT_THAT(call.arguments, Contains("--overlap"));
  EXPECT_EQ(call.arguments.back(), "2");
}

}  // namespace
}  // namespace evald

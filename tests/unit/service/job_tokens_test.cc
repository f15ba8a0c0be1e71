// Tokens of launched agents: for one host each, and no longer than the job.
#include "orchestrator/service/job_tokens.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(JobTokens, ATokenEndsWithItsJob) {
  JobTokens tokens;
  const std::string token = tokens.Make("slurm-1");
  EXPECT_EQ(token.size(), 64U);
  const auto holder = tokens.Find(http::HashOfToken(token));
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->name, "job:slurm-1");
  EXPECT_EQ(holder->role, http::Role::kWorker);
  EXPECT_FALSE(tokens.Find(http::HashOfToken("another")));
  tokens.End("slurm-1");
  EXPECT_FALSE(tokens.Find(http::HashOfToken(token)));
  EXPECT_EQ(tokens.HashOf("slurm-1"), "");
}

TEST(JobTokens, AnotherProcessKnowsATokenByItsHash) {
  JobTokens before, after;
  const std::string token = before.Make("slurm-1");
  after.Restore("slurm-1", before.HashOf("slurm-1"));
  EXPECT_TRUE(after.Find(http::HashOfToken(token)));
  after.Restore("slurm-2", "damaged");
  EXPECT_EQ(after.HashOf("slurm-2"), "");
}

TEST(JobTokens, AnAgentWithoutItsGpusIsOfNoUse) {
  JobTokens tokens;
  tokens.Make("slurm-1", 4);
  EXPECT_EQ(tokens.WrongWithDevices("job:slurm-1", {"cpu:0", "cpu:1"}), "it has 0 of 4 GPUs");
  EXPECT_EQ(tokens.WrongWithDevices("job:slurm-1", {"cuda:GPU-1", "cuda:GPU-2"}),
            "it has 2 of 4 GPUs");
  EXPECT_EQ(tokens.WrongWithDevices("job:slurm-1", {"cuda:GPU-1+GPU-2", "cuda:GPU-3+GPU-4"}), "");
  EXPECT_EQ(tokens.WrongWithDevices("alice", {"cpu:0"}), "");
}

TEST(JobTokens, ANameBelongsToItsToken) {
  JobTokens tokens;
  tokens.Reserve("slurm");
  EXPECT_TRUE(tokens.MayBeCalled("job:slurm-1", "slurm-1"));
  EXPECT_TRUE(tokens.MayBeCalled("job:slurm-1", "slurm-1-0"));  // a job of several nodes
  EXPECT_FALSE(tokens.MayBeCalled("job:slurm-1", "slurm-1-x0"));
  EXPECT_FALSE(tokens.MayBeCalled("job:slurm-1", "slurm-11"));
  EXPECT_FALSE(tokens.MayBeCalled("job:slurm-1", "slurm-2"));
  EXPECT_FALSE(tokens.MayBeCalled("alice", "slurm-1"));
  EXPECT_FALSE(tokens.MayBeCalled("alice", "slurm-1-5"));
  EXPECT_FALSE(tokens.MayBeCalled("alice", "slurm-2")) << "a job that is yet to come";
  EXPECT_TRUE(tokens.MayBeCalled("alice", "slurm-login"));
  EXPECT_TRUE(tokens.MayBeCalled("alice", "slurm"));
}

TEST(JobTokens, AJobBringsItsHostsAndNoMore) {
  JobTokens tokens;
  tokens.Make("slurm-1");
  tokens.Make("slurm-2", 0, 4);
  EXPECT_EQ(tokens.NodesOf("job:slurm-1"), 1);
  EXPECT_EQ(tokens.NodesOf("job:slurm-2"), 4);
  EXPECT_EQ(tokens.NodesOf("job:slurm-3"), 0);
  EXPECT_EQ(tokens.NodesOf("alice"), std::nullopt);
}

}  // namespace
}  // namespace evald

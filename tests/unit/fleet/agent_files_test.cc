#include "orchestrator/fleet/agent_files.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace evald {
namespace {

using namespace protocol;

Slice SliceOf(const std::string& file) {
  return {"sums", "/cache/prepared/ab12", "", 0, 4, file, {}};
}

class AgentFilesTest : public testing::Test {
 protected:
  void SetUp() override { files_.Begin("me"); }
  AgentFiles files_;
};

TEST_F(AgentFilesTest, NobodyHasAnythingBeforeItIsGivenWork) {
  EXPECT_FALSE(files_.Prepared("me", "ab12"));
  EXPECT_FALSE(files_.Checkpoint("me", "f00d"));
  EXPECT_FALSE(files_.Generations("me", "aa"));
  EXPECT_FALSE(files_.Upload("me", "/runs/r/generations/sums/7.1.jsonl"));
}

TEST_F(AgentFilesTest, ALeaseGivesItsTaskAndItsFilesUntilItEnds) {
  files_.Sent("me", "w0", Lease{7, 1, {SliceOf("/runs/r/7.1.jsonl")}, "r"});
  EXPECT_EQ(files_.Prepared("me", "ab12"), "/cache/prepared/ab12");
  const auto generations = files_.Upload("me", "/runs/r/7.1.jsonl");
  ASSERT_TRUE(generations);
  EXPECT_EQ(generations->file, "/runs/r/7.1.jsonl");
  EXPECT_EQ(generations->bytes_max, kGenerationsBytesMax);
  EXPECT_FALSE(files_.Upload("me", "/runs/r/7.2.jsonl"));
  EXPECT_FALSE(files_.Upload("me", "/runs/r/../r/7.1.jsonl")) << "names are compared, not followed";
  EXPECT_FALSE(files_.Upload("other", "/runs/r/7.1.jsonl"));
  files_.Received("me", TrialDone{7, 1, 1.0});
  EXPECT_FALSE(files_.Upload("me", "/runs/r/7.1.jsonl"));
}

TEST_F(AgentFilesTest, AFileThatIsReportedMayNotBeWrittenAnyMore) {
  files_.Sent("me", "w0",
              Lease{7, 1, {SliceOf("/runs/r/7.1-0.jsonl"), SliceOf("/runs/r/7.1-4.jsonl")}, "r"});
  files_.Received(
      "me", SliceDone{.trial = 7, .attempt = 1, .task = "sums", .file = "/runs/r/7.1-0.jsonl"});
  EXPECT_FALSE(files_.Upload("me", "/runs/r/7.1-0.jsonl"));
  EXPECT_TRUE(files_.Upload("me", "/runs/r/7.1-4.jsonl"));
}

TEST_F(AgentFilesTest, WhatIsRevokedMayNotBeWrittenAnyMore) {
  files_.Sent("me", "w0", Lease{7, 1, {SliceOf("/runs/r/7.1.jsonl")}, "r"});
  files_.Sent("me", "w0", Lease{8, 1, {SliceOf("/runs/r/8.1.jsonl")}, "r"});
  files_.Sent("me", "w0", Revoke{7, 1});
  EXPECT_FALSE(files_.Upload("me", "/runs/r/7.1.jsonl"));
  EXPECT_TRUE(files_.Upload("me", "/runs/r/8.1.jsonl"));
  files_.Received("me", TrialFailed{8, 1, true, "disk full"});
  EXPECT_FALSE(files_.Upload("me", "/runs/r/8.1.jsonl"));
}

TEST_F(AgentFilesTest, AJobGivesGenerationsByTheirHashAndItsScoresFile) {
  files_.Sent("me", "m0",
              Job{3, "sums", "/cache/prepared/ab12", 0, 4, "/runs/r/7.1.jsonl", "aa",
                  "/runs/r/s.jsonl", "r"});
  EXPECT_EQ(files_.Generations("me", "aa"), "/runs/r/7.1.jsonl");
  EXPECT_FALSE(files_.Generations("me", "bb"));
  const auto scores = files_.Upload("me", "/runs/r/s.jsonl");
  ASSERT_TRUE(scores);
  EXPECT_EQ(scores->bytes_max, kScoresBytesMax);
  EXPECT_FALSE(files_.Upload("me", "/runs/r/7.1.jsonl")) << "to be read, not written";
  files_.Received("me", JobDone{3, "/runs/r/s.jsonl", "cc", 1, 0.1});
  EXPECT_FALSE(files_.Upload("me", "/runs/r/s.jsonl"));
}

// A request to write may have been let in before the report came.
TEST_F(AgentFilesTest, AFileGetsNoNameOnceItIsReported) {
  files_.Sent("me", "w0", Lease{7, 1, {SliceOf("/runs/r/7.1-0.jsonl")}, "r"});
  int named = 0;
  const auto give = [&] { ++named; };
  EXPECT_TRUE(files_.Name("me", "/runs/r/7.1-0.jsonl", give));
  files_.Received(
      "me", SliceDone{.trial = 7, .attempt = 1, .task = "sums", .file = "/runs/r/7.1-0.jsonl"});
  EXPECT_FALSE(files_.Name("me", "/runs/r/7.1-0.jsonl", give));
  EXPECT_FALSE(files_.Name("nobody", "/runs/r/7.1-0.jsonl", give));
  EXPECT_EQ(named, 1);
}

TEST_F(AgentFilesTest, WhoChecksAReportedFileWaitsForItsName) {
  files_.Sent("me", "w0", Lease{7, 1, {SliceOf("/runs/r/7.1-0.jsonl")}, "r"});
  std::promise<void> naming, go_on;
  std::atomic<bool> named{false};
  std::thread giver([&] {
    files_.Name("me", "/runs/r/7.1-0.jsonl", [&] {
      naming.set_value();
      go_on.get_future().wait();
      named = true;
    });
  });
  naming.get_future().wait();
  files_.Received(
      "me", SliceDone{.trial = 7, .attempt = 1, .task = "sums", .file = "/runs/r/7.1-0.jsonl"});
  files_.AwaitNamed("/runs/r/another.jsonl");
  std::thread checker([&] {
    files_.AwaitNamed("/runs/r/7.1-0.jsonl");
    EXPECT_TRUE(named);
  });
  go_on.set_value();
  checker.join();
  giver.join();
  EXPECT_THROW(files_.Sent("me", "w0", Lease{8, 1, {SliceOf("/runs/r/8.jsonl")}, "r"});
               files_.Name("me", "/runs/r/8.jsonl", [] { throw std::runtime_error("disk"); }),
               std::runtime_error);
  files_.AwaitNamed("/runs/r/8.jsonl");
}

TEST_F(AgentFilesTest, AMetricJobsFileIsThatOfTheLastAgentThatHasTheJob) {
  files_.Begin("other");
  const Job job{
      3, "sums", "/cache/prepared/ab12", 0, 4, "/runs/r/7.1.jsonl", "aa", "/runs/r/s.jsonl", "r"};
  files_.Sent("me", "m0", job);
  files_.Sent("other", "m0", job);
  EXPECT_FALSE(files_.Upload("me", "/runs/r/s.jsonl"));
  EXPECT_TRUE(files_.Upload("other", "/runs/r/s.jsonl"));
  files_.Sent("", "m0", job);  // the service's own host, which needs no permissions
  EXPECT_FALSE(files_.Upload("other", "/runs/r/s.jsonl"));
  EXPECT_FALSE(files_.Upload("", "/runs/r/s.jsonl"));
}

TEST_F(AgentFilesTest, AnAgentIsThatOfItsToken) {
  files_.Begin("theirs", "wk");
  EXPECT_TRUE(files_.IsOf("theirs", "wk"));
  EXPECT_FALSE(files_.IsOf("theirs", "wk2"));
  EXPECT_FALSE(files_.IsOf("nobody", "wk"));
  EXPECT_TRUE(files_.IsOf("me", "")) << "no tokens are in force";
  files_.End("theirs");
  EXPECT_FALSE(files_.IsOf("theirs", "wk"));
}

TEST_F(AgentFilesTest, ACheckpointIsForThoseWhoLoadIt) {
  files_.Sent("me", "w0", Load{"/dev/shm/evald-0/f00d", "f00d"});
  EXPECT_EQ(files_.Checkpoint("me", "f00d"), "/dev/shm/evald-0/f00d");
  files_.Sent("me", "w0", Load{"/dev/shm/evald-0/beef", "beef"});
  EXPECT_FALSE(files_.Checkpoint("me", "f00d"));
  files_.Sent("me", "w1", Load{"", ""});
  EXPECT_FALSE(files_.Checkpoint("me", "")) << "an engine without weights of ours";
  files_.Begin("me");  // another conversation
  EXPECT_FALSE(files_.Checkpoint("me", "beef"));
  files_.Sent("stranger", "w0", Load{"/dev/shm/evald-0/beef", "beef"});
  EXPECT_FALSE(files_.Checkpoint("stranger", "beef")) << "never began";
}

}  // namespace
}  // namespace evald

#include "orchestrator/agent/process_book.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

using namespace protocol;

SliceDone SliceOf(int64_t trial, int attempt) {
  SliceDone slice;
  slice.trial = trial;
  slice.attempt = attempt;
  return slice;
}

class ProcessBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    book_.Started({"w0", "evald-worker", {"--seed", "1"}, "tag"});
    Hello hello;
    hello.pid = 4711;
    book_.Received("w0", hello);
  }
  ProcessBook book_;
};

TEST_F(ProcessBookTest, IntroducesAWarmWorker) {
  book_.Sent("w0", Load{"/dev/shm/x", "f00d"});
  EXPECT_TRUE(book_.Processes()[0].loaded.is_null());
  book_.Received("w0", Loaded{"f00d", Json{{"name", "native"}}, Json::object()});
  book_.Received("w0", Want{1});
  const HeldProcess held = book_.Processes()[0];
  EXPECT_EQ(held.pid, 4711);
  EXPECT_EQ(held.tag, "tag");
  EXPECT_TRUE(held.loading);
  EXPECT_EQ(held.fingerprint, "f00d");
  EXPECT_EQ(held.loaded["engine"]["name"], "native");
  EXPECT_EQ(held.wants, 1);
  book_.Sent("w0", Lease{7, 1, {}});
  EXPECT_EQ(book_.Processes()[0].wants, 0) << "answered";
  book_.Received("w0", Want{1});
  book_.Sent("w0", Load{"/dev/shm/y", "beef"});
  EXPECT_EQ(book_.Processes()[0].wants, 0) << "a Load makes wants void";
  EXPECT_TRUE(book_.Processes()[0].loaded.is_null());
}

TEST_F(ProcessBookTest, AWorkerThatWaitsForItsDeviceIsNotThereYet) {
  book_.Started({"w1", "evald-worker-cuda", {}, "tag"});
  Hello hello;
  hello.pid = 4712;
  hello.waits = "cuda:GPU-a is held by process 1";
  EXPECT_TRUE(book_.Received("w1", hello));
  EXPECT_EQ(book_.Processes()[1].pid, 0);
  hello.waits.clear();
  book_.Received("w1", hello);
  EXPECT_EQ(book_.Processes()[1].pid, 4712);
}

TEST_F(ProcessBookTest, WhatWasHeldForTheOneBeforeConcernsNobody) {
  book_.Sent("w0", Lease{7, 1, {}});
  book_.Sent("w0", Lease{8, 2, {}});
  const auto revokes = book_.BeginAnew();
  ASSERT_EQ(revokes.size(), 2u);
  EXPECT_EQ(revokes[0].second.trial, 7);
  EXPECT_EQ(book_.NotAtRest(), std::vector<std::string>{"w0"});
  EXPECT_TRUE(book_.idle()) << "for the new one it holds nothing";
  EXPECT_FALSE(book_.Received("w0", SliceOf(7, 1)));
  EXPECT_FALSE(book_.Received("w0", TrialDone{7, 1, 1.0}));
  EXPECT_FALSE(book_.Received("w0", Shortened{7, 1, "t", 0, 1}));
  EXPECT_EQ(book_.NotAtRest().size(), 1u) << "its files may still change";
  EXPECT_FALSE(book_.Received("w0", Revoked{7, 1}));
  EXPECT_FALSE(book_.Received("w0", Revoked{8, 2}));
  EXPECT_TRUE(book_.NotAtRest().empty());
  book_.Sent("w0", Lease{8, 3, {}});
  EXPECT_TRUE(book_.Received("w0", SliceOf(8, 3)));
}

TEST_F(ProcessBookTest, ThreeOrchestratorsInARow) {
  book_.Sent("w0", Lease{7, 1, {}});
  EXPECT_EQ(book_.BeginAnew().size(), 1u);
  EXPECT_TRUE(book_.BeginAnew().empty()) << "the revoke is on its way";
  EXPECT_EQ(book_.NotAtRest().size(), 1u);
  book_.Ended("w0");
  EXPECT_TRUE(book_.NotAtRest().empty());
  EXPECT_TRUE(book_.empty());
}

// Each orchestrator numbers jobs anew. The end of an earlier orchestrator's job must not be taken
// for that of a new job.
TEST_F(ProcessBookTest, AJobOfTheOneBeforeEndsUnheard) {
  book_.Started({"m0", "evald-metric", {}, ""});
  book_.Sent("m0", Job{3, "sums", "/p", 0, 4, "/g", "aa", "/s"});
  EXPECT_TRUE(book_.BeginAnew().empty());
  EXPECT_FALSE(book_.Received("m0", JobDone{3, "/s", "bb", 1, 0.1}));
  book_.Received("m0", Want{1});
  book_.Sent("m0", Job{3, "sums", "/p", 4, 8, "/g", "aa", "/s2"});
  EXPECT_FALSE(book_.idle());
  EXPECT_TRUE(book_.Received("m0", JobDone{3, "/s2", "cc", 1, 0.1}));
  EXPECT_TRUE(book_.idle());
}

TEST_F(ProcessBookTest, WhatDoesNotArriveIsStillAskedFor) {
  book_.Received("w0", Want{1});
  book_.Sent("w0", Lease{7, 1, {}, "r"});
  book_.BeginAnew();
  book_.Undelivered("w0", Lease{7, 1, {}, "r"});
  EXPECT_TRUE(book_.NotAtRest().empty());
  EXPECT_EQ(book_.Processes()[0].wants, 1) << "the worker waits";
  book_.Sent("w0", Load{"/dev/shm/x", "f00d"});
  book_.Undelivered("w0", Load{"/dev/shm/x", "f00d"});
  EXPECT_FALSE(book_.Processes()[0].loading);
}

TEST_F(ProcessBookTest, AFailedLoadIsForgotten) {
  book_.Sent("w0", Load{"/dev/shm/x", "f00d"});
  EXPECT_TRUE(book_.Received("w0", TrialFailed{-1, 0, false, "no such folder"}));
  EXPECT_FALSE(book_.Processes()[0].loading);
  EXPECT_FALSE(book_.Received("w7", Want{1})) << "of nobody";
}

}  // namespace
}  // namespace evald

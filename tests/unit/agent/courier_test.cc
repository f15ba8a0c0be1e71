// An agent's files over a service that answers badly for a while.
#include "orchestrator/agent/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/http/server.h"
#include "tests/unit/checkpoint/checkpoint_files.h"

namespace evald {
namespace {

using std::chrono::milliseconds;

constexpr int kTries = 6;

class CourierTest : public ::testing::Test {
 protected:
  // A prepared task without files, once `refusals_` have been given.
  http::Router Routes() {
    http::Router router;
    router.Add({"GET", "/v1/agents/{agent}/prepared/{key}", http::Role::kRead,
                [this](const auto&, const http::Responder& answer) {
                  const bool refuse = ++asked_ <= refusals_;
                  http::Response response;
                  response.status = refuse ? 503 : 200;
                  response.body = refuse ? "{}" : R"({"files": []})";
                  answer(std::move(response));
                }});
    return router;
  }

  // Sends a lease to a worker, and runs until that has it or the orchestrator hears of it.
  void Carry(bool connected, int refusals) {
    refusals_ = refusals;
    Loop loop;
    StagerOptions staging;
    staging.root = folder_.path() / "staging";
    const OrchestratorAddress address{"", "http://127.0.0.1:" + std::to_string(server_.port()), "",
                                      ""};
    Courier courier(&loop, address, folder_.path() / "spool", "me", staging,
                    {[&](const std::string&, const protocol::Message& message) {
                       to_process_.push_back(message);
                       loop.Stop();
                     },
                     [&](const std::string&, const protocol::Message& message) {
                       to_orchestrator_.push_back(message);
                       if (std::holds_alternative<protocol::Want>(message)) loop.Stop();
                     },
                     [&](const std::string&, const protocol::Message&) { ++undelivered_; }},
                    milliseconds(1));
    courier.SetConnected(connected);
    courier.ToProcess(
        "w0",
        protocol::Lease{
            7,
            2,
            {{"sums", "/cache/prepared/ab12", "", 0, 4, "/runs/r/generations/sums/7.2.jsonl", {}}},
            "f00d",
            "r"});
    loop.Run();
  }

  testing::TempFolder folder_;
  std::atomic<int> asked_{0};
  std::atomic<int> refusals_{0};
  http::Server server_{{}, Routes()};
  std::vector<protocol::Message> to_process_, to_orchestrator_;
  int undelivered_ = 0;
};

TEST_F(CourierTest, WhileTheServiceIsAwayNoTryCounts) {
  Carry(false, kTries + 3);
  EXPECT_EQ(asked_, kTries + 4);
  ASSERT_EQ(to_process_.size(), 1u);
  EXPECT_EQ(std::get<protocol::Lease>(to_process_[0]).trial, 7);
  EXPECT_TRUE(to_orchestrator_.empty()) << "the attempt is not lost";
}

TEST_F(CourierTest, WhileItIsThereTriesAreBounded) {
  Carry(true, 1000);
  EXPECT_EQ(asked_, kTries);
  EXPECT_TRUE(to_process_.empty());
  EXPECT_EQ(undelivered_, 1);
  ASSERT_EQ(to_orchestrator_.size(), 2u);
  const auto failed = std::get<protocol::TrialFailed>(to_orchestrator_[0]);
  EXPECT_EQ(failed.trial, 7);
  EXPECT_EQ(failed.attempt, 2);
  EXPECT_TRUE(failed.retry);
}

TEST_F(CourierTest, AFewFailuresCostNothing) {
  Carry(true, kTries - 1);
  EXPECT_EQ(to_process_.size(), 1u);
  EXPECT_TRUE(to_orchestrator_.empty());
}

}  // namespace
}  // namespace evald

// An agent's files, with a service that answers badly for a while.
#include "orchestrator/agent/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "http_server/server.h"
#include "orchestrator/fleet/loop.h"
#include "tests/unit/checkpoint/checkpoint_files.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using std::chrono::milliseconds;

constexpr int kTries = 6;
constexpr const char* kGenerations = "{}\n";

class CourierTest : public ::testing::Test {
 protected:
  // A prepared task without files. The first `refusals_` requests are refused.
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

  // The routes of a metric job: its prepared task, its generations, and the upload of its scores.
  http::Router JobRoutes() {
    http::Router router = Routes();
    router.Add({"GET", "/v1/agents/{agent}/generations/{hash}", http::Role::kRead,
                [](const auto&, const http::Responder& answer) {
                  http::Response response;
                  response.body = kGenerations;
                  answer(std::move(response));
                }});
    router.Add({"PUT", "/v1/agents/{agent}/files/{hash}", http::Role::kRead,
                [this](const auto& request, const http::Responder& answer) {
                  received_ += request->body;
                  answer(http::JsonResponse(takes_files_ ? 200 : 403, "{}"));
                },
                http::RequestLimits{}.body_bytes_max});
    return router;
  }

  // Sends a job to a metric process, which writes `scores`. Runs until the orchestrator hears of
  // the job.
  void Score(const std::string& scores) {
    Loop loop;
    StagerOptions staging;
    staging.root = folder_.path() / "staging";
    const OrchestratorAddress address{"", "http://127.0.0.1:" + std::to_string(server_.port()), "",
                                      ""};
    Courier* sender = nullptr;
    Courier courier(&loop, address, folder_.path() / "spool", "me", staging,
                    {[&](const std::string& id, const protocol::Message& message) {
                       const auto& job = std::get<protocol::Job>(message);
                       WriteFileAtomic(job.file, scores);
                       sender->FromProcess(id, protocol::JobDone{.job = job.job,
                                                                 .file = job.file,
                                                                 .hash = HashHex(scores),
                                                                 .bytes = scores.size(),
                                                                 .attempt = job.attempt});
                     },
                     [&](const std::string&, const protocol::Message& message) {
                       to_orchestrator_.push_back(message);
                       loop.Stop();
                     },
                     [&](const std::string&, const protocol::Message&) { ++undelivered_; }},
                    milliseconds(1));
    sender = &courier;
    courier.SetConnected(true);
    courier.ToProcess("m0", protocol::Job{.job = 9,
                                          .task = "sums",
                                          .prepared = "/cache/prepared/ab12",
                                          .first = 0,
                                          .end = 4,
                                          .generations = "/runs/r/generations/sums/7.2.jsonl",
                                          .hash = HashHex(kGenerations),
                                          .file = "/runs/r/scores/sums/7.2.jsonl",
                                          .run = "r",
                                          .attempt = 3});
    loop.Run();
  }

  // Sends a lease to a worker. Runs until the worker has the lease or the orchestrator hears of it.
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

  TemporaryFolder folder_;
  std::atomic<int> asked_{0};
  std::atomic<int> refusals_{0};
  std::atomic<bool> takes_files_{true};
  std::string received_;  // the bodies of all uploads
  http::Server server_{{}, JobRoutes()};
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

TEST_F(CourierTest, AFileOfManyPiecesArrivesWhole) {
  std::string scores(5 << 20, 'x');
  for (size_t i = 0; i < scores.size(); i += 1000)
    scores[i] = static_cast<char>('a' + i / 1000 % 26);
  Score(scores);
  ASSERT_EQ(to_orchestrator_.size(), 1u);
  const auto* done = std::get_if<protocol::JobDone>(&to_orchestrator_[0]);
  ASSERT_NE(done, nullptr) << std::get<protocol::JobFailed>(to_orchestrator_[0]).message;
  EXPECT_EQ(done->file, "/runs/r/scores/sums/7.2.jsonl");
  EXPECT_TRUE(received_ == scores);
}

// Otherwise the failure would be taken for that of another attempt, and the job would never be
// leased again.
TEST_F(CourierTest, AJobWhoseFileIsRefusedHasFailedInItsAttempt) {
  takes_files_ = false;
  Score("scores");
  ASSERT_EQ(to_orchestrator_.size(), 1u);
  const auto failed = std::get<protocol::JobFailed>(to_orchestrator_[0]);
  EXPECT_EQ(failed.job, 9);
  EXPECT_EQ(failed.attempt, 3);
  EXPECT_TRUE(failed.retry);
}

TEST_F(CourierTest, AJobWhoseTaskCannotBeFetchedHasFailedInItsAttempt) {
  refusals_ = 1000;
  Score("scores");
  ASSERT_GE(to_orchestrator_.size(), 1u);
  EXPECT_EQ(std::get<protocol::JobFailed>(to_orchestrator_[0]).attempt, 3);
}

}  // namespace
}  // namespace evald

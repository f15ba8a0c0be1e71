// Files of work that several processes of a host get at the same time.
#include "orchestrator/agent/spool.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "http_server/server.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

constexpr const char* kAnswers = "{}\n";

// Answers no request for generations before two have come.
class SpoolTest : public ::testing::Test {
 protected:
  http::Router Routes() {
    http::Router router;
    router.Add({"GET", "/v1/agents/{agent}/prepared/{key}", http::Role::kRead,
                [](const auto&, const http::Responder& answer) {
                  answer(http::JsonResponse(200, R"({"files": []})"));
                }});
    router.Add({"GET", "/v1/agents/{agent}/generations/{hash}", http::Role::kRead,
                [this](const auto&, const http::Responder& answer) {
                  waiting_.push_back(answer);
                  if (waiting_.size() < 2) return;
                  for (const http::Responder& one : waiting_) {
                    http::Response response;
                    response.body = kAnswers;
                    one(std::move(response));
                  }
                }});
    return router;
  }

  TemporaryFolder folder_;
  std::vector<http::Responder> waiting_;  // the server's thread only
  http::Server server_{{}, Routes()};
};

TEST_F(SpoolTest, TwoJobsOfTheSameFileGetItAtTheSameTime) {
  Spool spool(folder_.path(), "me");
  const OrchestratorAddress address{"", "http://127.0.0.1:" + std::to_string(server_.port()), "",
                                    ""};
  std::string files[2];
  {
    std::vector<std::jthread> threads;
    for (std::string& file : files) {
      threads.emplace_back([&] {
        const std::atomic<bool> over{false};
        FileClient client(address, &over);
        file = spool
                   .Localize(protocol::Job{.job = 1,
                                           .task = "sums",
                                           .prepared = "/cache/prepared/ab12",
                                           .generations = "/runs/r/generations/sums/7.2.jsonl",
                                           .hash = HashHex(kAnswers),
                                           .file = "/runs/r/scores/sums/7.2.jsonl",
                                           .run = "r"},
                             &client)
                   .generations;
      });
    }
  }
  EXPECT_EQ(ReadFile(files[0]), kAnswers);
  EXPECT_EQ(files[0], files[1]);
  const auto folder = std::filesystem::path(files[0]).parent_path();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
      << "no file is left beside it";
}

}  // namespace
}  // namespace evald

// Many calls at once.
#include "http_client/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scripted_server.h"

namespace evald::http_client::test {
namespace {

using std::chrono::milliseconds;

Request GetOf(const std::string& url) {
  Request request;
  request.url = url;
  request.limits.total = kPatience;
  return request;
}

std::vector<Transfers::Ended> Finish(Transfers* transfers) {
  std::vector<Transfers::Ended> all;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (transfers->pending() > 0 && std::chrono::steady_clock::now() < end) {
    for (auto& ended : transfers->Poll(milliseconds(1000))) all.push_back(std::move(ended));
  }
  return all;
}

TEST(Transfers, GiveEachCallItsOwnAnswer) {
  std::atomic<int> here{0}, most{0};
  ScriptedServer server([&](const std::string& request) {
    const int now = ++here;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(milliseconds(50));
    --here;
    return Answer(200, request.substr(5, request.find(' ', 5) - 5));
  });
  Transfers transfers;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 16; ++i)
      transfers.Start(i, GetOf(server.url("/" + std::to_string(i))));
    EXPECT_EQ(transfers.pending(), 16u);
    std::set<uint64_t> seen;
    for (const auto& ended : Finish(&transfers)) {
      EXPECT_EQ(ended.response.body, std::to_string(ended.id));
      seen.insert(ended.id);
    }
    EXPECT_EQ(seen.size(), 16u);
  }
  EXPECT_GT(most, 1) << "calls are under way at once";
  EXPECT_LE(server.connections(), 16) << "the second round uses the connections of the first";
}

TEST(Transfers, AFailureIsOneCallsOwn) {
  ScriptedServer server([](const std::string& request) {
    if (request.starts_with("GET /bad ")) return Script{"nonsense\r\n\r\n", {}, "", true};
    return Answer(200, "fine");
  });
  Transfers transfers;
  transfers.Start(1, GetOf(server.url("/bad")));
  transfers.Start(2, GetOf(server.url("/good")));
  Request thrower = GetOf(server.url("/good"));
  thrower.sink = [](std::string_view) -> bool { throw std::runtime_error("full"); };
  transfers.Start(3, thrower);
  for (const auto& [id, response] : Finish(&transfers)) {
    EXPECT_EQ(response.outcome, id == 1   ? Outcome::kBroken
                                : id == 2 ? Outcome::kAnswered
                                          : Outcome::kStopped);
    EXPECT_EQ(response.thrown != nullptr, id == 3);
  }
}

TEST(Transfers, PollWaitsNoLongerThanItsBudget) {
  ScriptedServer server([](const std::string&) { return Script{"", kPatience}; });
  Transfers transfers;
  EXPECT_TRUE(transfers.Poll(kPatience).empty()) << "nothing is under way";
  transfers.Start(1, GetOf(server.url()));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(transfers.Poll(milliseconds(100)).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience / 2);
  EXPECT_EQ(transfers.pending(), 1u);
  transfers.CancelAll();
  EXPECT_EQ(transfers.pending(), 0u);
}

}  // namespace
}  // namespace evald::http_client::test

// When a call is made again, and after how long.
#include "http_client/retry.h"

#include <gtest/gtest.h>

#include <thread>

#include "http_client/client.h"
#include "scripted_server.h"

namespace evald::http_client::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

const RetryPolicy kQuick{.attempts_max = 3, .first_pause = milliseconds(1)};

// Answers with the first script, then with the second.
ScriptedServer::Handler First(const Script& first, const Script& then) {
  return [first, then, asked = std::make_shared<std::atomic<int>>(0)](const std::string&) {
    return (*asked)++ == 0 ? first : then;
  };
}

Request Ask(const ScriptedServer& server, const std::string& method = "GET") {
  Request request;
  request.method = method;
  request.url = server.url();
  request.limits.total = kPatience;
  return request;
}

TEST(RetryPause, DoublesToItsLimitAndVaries) {
  const RetryPolicy policy{9, seconds(1), seconds(5), seconds(60)};
  const int whole_s[] = {1, 2, 4, 5, 5};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(RetryPause(policy, i + 1, 0, 0), milliseconds(whole_s[i] * 500));
    EXPECT_EQ(RetryPause(policy, i + 1, 0, 0.5), milliseconds(whole_s[i] * 750));
  }
  EXPECT_EQ(RetryPause(policy, 1'000'000, 0, 0.5), milliseconds(3750));
}

TEST(RetryPause, IsAtLeastRetryAfterWithinItsLimit) {
  const RetryPolicy policy{9, seconds(1), seconds(5), seconds(60)};
  EXPECT_EQ(RetryPause(policy, 1, 30, 0), seconds(30));
  EXPECT_EQ(RetryPause(policy, 9, 1, 0.5), milliseconds(3750));
  EXPECT_EQ(RetryPause(policy, 1, 1e18, 0), seconds(60));
}

TEST(Retry, WaitsAsLongAsTheServerAsks) {
  ScriptedServer server(First(Answer(503, "", "Retry-After: 1\r\n"), Answer(200, "fine")));
  const auto begin = Clock::now();
  Client client;
  const Response response = client.Perform(Ask(server), kQuick);
  EXPECT_EQ(response.body, "fine");
  EXPECT_EQ(response.attempts, 2);
  EXPECT_GE(Clock::now() - begin, seconds(1));
}

TEST(Retry, ReadsADateToo) {
  ScriptedServer server([](const std::string&) {
    return Answer(429, "", "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n");
  });
  EXPECT_GT(Client().Perform(Ask(server)).retry_after_s, 3600);
}

TEST(Retry, EndsAfterItsAttempts) {
  ScriptedServer server([](const std::string&) { return Answer(500, ""); });
  const Response response = Client().Perform(Ask(server), kQuick);
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.attempts, 3);
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(Retry, ABrokenConnectionIsWorthAnother) {
  const Script cut{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", {}, "", true};
  ScriptedServer server(First(cut, Answer(200, "fine")));
  EXPECT_EQ(Client().Perform(Ask(server), kQuick).body, "fine");
}

TEST(Retry, ARefusalIsNot) {
  ScriptedServer server([](const std::string&) { return Answer(404, ""); });
  EXPECT_EQ(Client().Perform(Ask(server), kQuick).attempts, 1);
}

TEST(Retry, NeitherIsACallThatRanOutOfTime) {
  ScriptedServer server([](const std::string&) { return Script{"", kPatience}; });
  Request request = Ask(server);
  request.limits.total = milliseconds(100);
  EXPECT_EQ(Client().Perform(request, kQuick).attempts, 1);
}

TEST(Retry, APostIsRepeatedOnlyWithAnIdempotencyKey) {
  ScriptedServer server([](const std::string&) { return Answer(503, ""); });
  Request request = Ask(server, "POST");
  EXPECT_EQ(Client().Perform(request, kQuick).attempts, 1);
  request.headers = {{"Idempotency-Key", "k"}};
  EXPECT_EQ(Client().Perform(request, kQuick).attempts, 3);
}

TEST(Retry, ASinkThatHadBytesMustBeginAnew) {
  const Script cut{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", {}, "", true};
  std::string taken;
  const auto take = [&](std::string_view bytes) {
    taken += bytes;
    return true;
  };
  ScriptedServer once(First(cut, Answer(200, "fine")));
  Request request = Ask(once);
  request.sink = take;
  EXPECT_EQ(Client().Perform(request, kQuick).attempts, 1);
  EXPECT_EQ(taken, "12345");
  ScriptedServer twice(First(cut, Answer(200, "fine")));
  taken.clear();
  request.url = twice.url();
  request.rewind = [&] { taken.clear(); };
  EXPECT_EQ(Client().Perform(request, kQuick).attempts, 2);
  EXPECT_EQ(taken, "fine");
}

TEST(Retry, APauseCanBeCancelled) {
  ScriptedServer server([](const std::string&) { return Answer(503, "", "Retry-After: 60\r\n"); });
  std::atomic<bool> cancel{false};
  std::thread other([&] {
    while (server.requests().empty()) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(100));
    cancel = true;
  });
  const auto begin = Clock::now();
  EXPECT_EQ(Client().Perform(Ask(server), kQuick, &cancel).outcome, Outcome::kCancelled);
  EXPECT_LT(Clock::now() - begin, seconds(30));
  other.join();
}

}  // namespace
}  // namespace evald::http_client::test

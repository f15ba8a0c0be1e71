// A server on loopback and clients on real sockets.
#include "http_server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

#include "base/jsonl.h"
#include "http_server/problem.h"
#include "socket_client.h"
#include "tests/unit/support/caught.h"

namespace evald::http::test {
namespace {

Response Text(std::string body) {
  Response response;
  response.headers.Add("Content-Type", "text/plain");
  response.body = std::move(body);
  return response;
}

Router ServerRoutes() {
  Router router;
  router.Add({"GET", "/hello", Role::kRead,
              [](const auto&, const Responder& answer) { answer(Text("hello")); }});
  router.Add({"POST", "/echo", Role::kSubmit,
              [](const auto& request, const Responder& answer) { answer(Text(request->body)); },
              1 << 16});
  router.Add({"GET", "/later", Role::kRead, [](const auto&, Responder answer) {
                std::thread([answer = std::move(answer)] {
                  std::this_thread::sleep_for(std::chrono::milliseconds(50));
                  answer(Text("later"));
                }).detach();
              }});
  router.Add({"GET", "/forgotten", Role::kRead, [](const auto&, const Responder&) {}});
  router.Add({"GET", "/broken", Role::kRead,
              [](const auto&, const Responder&) { throw std::runtime_error("secret path"); }});
  router.Add({"GET", "/input", Role::kRead, [](const auto&, const Responder&) {
                throw Error(ErrorKind::kInput, "odd", "even it out");
              }});
  router.Add({"GET", "/large", Role::kRead, [](const auto&, const Responder& answer) {
                answer(Text(std::string(3'000'000, 'x')));
              }});
  return router;
}

class ServerTest : public ::testing::Test {
 protected:
  Server server_{{}, ServerRoutes()};
};

TEST_F(ServerTest, AnswersOnOneConnectionOneAfterTheOther) {
  SocketClient client(server_.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(Ask("GET", "/hello")));
    const Answer answer = client.Receive();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.headers.at("x-content-type-options"), "nosniff");
    EXPECT_TRUE(answer.headers.contains("date"));
  }
}

TEST(Server, AHandlerLearnsThatItsClientHasGone) {
  std::promise<Responder> asked;
  Router router;
  router.Add({"GET", "/long", Role::kRead,
              [&](const auto&, const Responder& answer) { asked.set_value(answer); }});
  Server server({}, std::move(router));
  std::optional<SocketClient> client(std::in_place, server.port());
  // Another request waits unread behind the first one
  client->Send(Ask("GET", "/long") + Ask("GET", "/none"));
  const Responder answer = asked.get_future().get();
  EXPECT_TRUE(answer.wanted());
  client.reset();
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (answer.wanted() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(answer.wanted());
}

// 10 MB of "0123456789", of which nothing is held.
class Digits : public PieceSource {
 public:
  uint64_t bytes() const override { return kBytes; }
  std::string Next(size_t most) override {
    most_asked = std::max(most_asked, most);
    std::string text;
    while (text.size() < std::min<size_t>(most, 1000) && sent_ < cut)
      text += static_cast<char>('0' + sent_++ % 10);
    return text;
  }
  static constexpr uint64_t kBytes = 10'000'000;
  uint64_t cut = kBytes;  // no bytes come after so many
  size_t most_asked = 0;

 private:
  uint64_t sent_ = 0;
};

TEST(Server, ABodyIsMadeWhileItIsSent) {
  auto digits = std::make_shared<Digits>();
  Router router;
  router.Add({"GET", "/digits", Role::kRead, [&](const auto&, const Responder& answer) {
                Response response = Text("");
                response.pieces = digits;
                answer(std::move(response));
              }});
  Server server({}, std::move(router));
  SocketClient client(server.port());
  client.Send(Ask("HEAD", "/digits"));
  EXPECT_EQ(client.Receive(true).headers.at("content-length"), "10000000");
  EXPECT_EQ(digits->most_asked, 0u);
  const Answer answer = Fetch(server.port(), Ask("GET", "/digits"));
  ASSERT_EQ(answer.body.size(), Digits::kBytes);
  EXPECT_EQ(answer.body.substr(9'999'990), "0123456789");
  EXPECT_LE(digits->most_asked, 64u << 10);

  digits = std::make_shared<Digits>();
  digits->cut = 5'000'000;  // the source has gone: the client sees an answer that is cut short
  EXPECT_LT(Fetch(server.port(), Ask("GET", "/digits")).body.size(), Digits::kBytes);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  SocketClient client(server_.port());
  client.Send(Ask("GET", "/later") + Ask("POST", "/echo", "", "two") + Ask("GET", "/none") +
              Ask("GET", "/hello"));
  EXPECT_EQ(client.Receive().body, "later");
  EXPECT_EQ(client.Receive().body, "two");
  EXPECT_EQ(client.Receive().status, 404);
  EXPECT_EQ(client.Receive().body, "hello");
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  SocketClient client(server_.port());
  client.Send(Ask("HEAD", "/hello") + Ask("HEAD", "/none") + Ask("GET", "/hello"));
  EXPECT_EQ(client.Receive(true).headers.at("content-length"), "5");
  EXPECT_EQ(client.Receive(true).status, 404);
  EXPECT_EQ(client.Receive().body, "hello");
}

TEST_F(ServerTest, SendsLargeBodiesWhole) {
  EXPECT_EQ(Fetch(server_.port(), Ask("GET", "/large")).body.size(), 3'000'000u);
}

TEST_F(ServerTest, WhatFailsIsAProblemDocument) {
  const Answer input = Fetch(server_.port(), Ask("GET", "/input"));
  EXPECT_EQ(input.status, 422);
  EXPECT_EQ(input.headers.at("content-type"), "application/problem+json");
  const Json document = ParseJson(input.body, "problem");
  EXPECT_EQ(document["status"], 422);
  EXPECT_EQ(document["detail"], "odd");
  EXPECT_EQ(document["remedy"], "even it out");
  const Answer broken = Fetch(server_.port(), Ask("GET", "/broken"));
  EXPECT_EQ(broken.status, 500);
  EXPECT_THAT(broken.body, ::testing::Not(::testing::HasSubstr("secret")));
  EXPECT_EQ(Fetch(server_.port(), Ask("GET", "/forgotten")).status, 500);
  EXPECT_EQ(Fetch(server_.port(), Ask("PUT", "/hello")).headers.at("allow"), "GET, HEAD");
}

TEST_F(ServerTest, TellsAnUploaderToGoOn) {
  SocketClient client(server_.port());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "
      "4\r\n\r\n");
  EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), ::testing::HasSubstr("100 Continue"));
  client.Send("abcd");
  EXPECT_EQ(client.Receive().body, "abcd");
}

TEST_F(ServerTest, ClosesForHttp10AndWhenAskedTo) {
  SocketClient old(server_.port());
  old.Send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.Receive().headers.at("connection"), "close");
  EXPECT_TRUE(old.EndsWithin(kPatience));
  SocketClient polite(server_.port());
  polite.Send(Ask("GET", "/hello", "Connection: close\r\n"));
  EXPECT_EQ(polite.Receive().body, "hello");
  EXPECT_TRUE(polite.EndsWithin(kPatience));
}

TEST_F(ServerTest, AClientThatGoesDoesNoHarm) {
  for (int i = 0; i < 50; ++i) {
    SocketClient client(server_.port());
    client.Send(Ask("GET", i % 2 ? "/later" : "/large"));
  }
  EXPECT_EQ(Fetch(server_.port(), Ask("GET", "/hello")).body, "hello");
}

TEST_F(ServerTest, CountsWhatItDoes) {
  Fetch(server_.port(), Ask("GET", "/hello"));
  Fetch(server_.port(), Ask("BREW", "/anything-%41"));
  Statistics statistics;  // an answer may arrive before it is counted
  const auto begun = std::chrono::steady_clock::now();
  while (statistics.requests.size() < 2 && std::chrono::steady_clock::now() - begun < kPatience) {
    std::promise<Statistics> promise;
    server_.Post([&] { promise.set_value(server_.statistics()); });
    statistics = promise.get_future().get();
  }
  EXPECT_EQ(statistics.requests.at({"GET", "/hello", 200}), 1u);
  EXPECT_EQ(statistics.requests.at({"other", "", 404}), 1u);
  EXPECT_EQ(statistics.durations.at("/hello").count, 1u);
}

bool Listens(uint16_t port) {
  try {
    SocketClient client(port);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

// Holds the answer to "GET /" until the test releases it.
struct KeptAnswer {
  Router Routes() {
    Router router;
    router.Add({"GET", "/", Role::kRead, [this](const auto&, Responder answer) {
                  give = std::move(answer);
                  asked.set_value();
                }});
    return router;
  }
  Responder give{[](Response) {}};
  std::promise<void> asked;
};

TEST(ServerStop, LetsAnAnswerUnderWayEnd) {
  KeptAnswer kept;
  Server server({}, kept.Routes());
  SocketClient client(server.port());
  client.Send(Ask("GET", "/"));
  kept.asked.get_future().wait();
  std::thread later([&, port = server.port()] {
    while (Listens(port)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kept.give(Text("later"));
  });
  server.Stop(kPatience);
  later.join();
  Answer answer = client.Receive();
  EXPECT_EQ(answer.body, "later");
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_TRUE(client.EndsWithin(kPatience));
}

TEST(ServerStop, AnAnswerAfterTheEndIsDropped) {
  KeptAnswer kept;
  auto server = std::make_unique<Server>(ServerOptions{}, kept.Routes());
  SocketClient client(server->port());
  client.Send(Ask("GET", "/"));
  kept.asked.get_future().wait();
  server->Stop(std::chrono::milliseconds(20));
  server.reset();
  kept.give(Text("too late"));
  EXPECT_TRUE(client.EndsWithin(kPatience));
}

TEST(ServerOptions, BeyondLoopbackNeedsTlsAndTokens) {
  const auto complaint = [](ServerOptions options) -> std::string {
    return CaughtText([&] { Server server(std::move(options), ServerRoutes()); },
                      ErrorKind::kUsage);
  };
  ServerOptions open;
  open.address = "0.0.0.0";
  EXPECT_THAT(complaint(open), ::testing::HasSubstr("needs TLS"));
  open.certificate = "c.pem";
  EXPECT_THAT(complaint(open), ::testing::HasSubstr("both a certificate and a key"));
  open.key = "k.pem";
  EXPECT_THAT(complaint(open), ::testing::HasSubstr("needs tokens"));
  open.tokens.Add("a", Role::kRead, "0123456789abcdef");
  EXPECT_THAT(complaint(open), ::testing::HasSubstr("c.pem"));
  ServerOptions wrong;
  wrong.address = "here";
  EXPECT_THAT(complaint(wrong), ::testing::HasSubstr("'here'"));
  Server first({}, ServerRoutes());
  ServerOptions taken;
  taken.port = first.port();
  EXPECT_THAT(complaint(taken), ::testing::HasSubstr("in use"));
}

}  // namespace
}  // namespace evald::http::test

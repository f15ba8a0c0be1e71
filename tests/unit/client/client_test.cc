// The command line's client of the REST interface.
#include "orchestrator/cli/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "orchestrator/api/api_server.h"
#include "orchestrator/cli/event_parser.h"
#include "tests/unit/api/memory_service.h"
#include "tests/unit/http_client/scripted_server.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::cli {
namespace {

using ::testing::HasSubstr;

TEST(EventParser, ReadsTheSameWhereverBytesAreCut) {
  const std::string text =
      ": hello\nretry: 1\n\nid: 1\nevent: a\ndata: x\ndata:y\n\nid: 2\r\ndata: z\r\n\r\nid: "
      "3\n\ndata: half";
  for (size_t step = 1; step <= text.size(); ++step) {
    EventParser parser;
    std::vector<EventParser::Message> messages;
    for (size_t at = 0; at < text.size(); at += step) parser.Feed(text.substr(at, step), &messages);
    ASSERT_EQ(messages.size(), 2u) << step;
    EXPECT_EQ(messages[0].id, "1");
    EXPECT_EQ(messages[0].data, "x\ny");
    EXPECT_EQ(messages[1].id, "2");
    EXPECT_EQ(messages[1].data, "z");
  }
}

TEST(EventParser, RefusesAnEventWithoutEnd) {
  EventParser parser;
  std::vector<EventParser::Message> messages;
  const std::string piece(1 << 20, 'x');
  const auto feed = [&] {
    for (int i = 0; i < 100; ++i) parser.Feed(piece, &messages);
  };
  EXPECT_EQ(Caught(feed).kind(), ErrorKind::kInput);
}

TEST(ClientFlags, ATokenDoesNotCrossANetworkUnencrypted) {
  ::setenv("EVALD_TOKEN", "0123456789abcdef", 1);
  for (const char* server :
       {"http://eval.lan:8642", "http://127.0.0.1.evil.example", "http://localhost.evil.example",
        "http://127.0.0.1@evil.example", "http://localhost:1@evil.example/"}) {
    EXPECT_THAT(Caught([&] { ReadClientFlags({server}); }).what(), HasSubstr("unencrypted"))
        << server;
  }
  for (const char* server :
       {"http://127.0.0.1:1", "http://localhost/", "http://[::1]:1", "https://eval.lan"}) {
    EXPECT_EQ(ReadClientFlags({server}).token, "0123456789abcdef") << server;
  }
  ::unsetenv("EVALD_TOKEN");
  EXPECT_EQ(ReadClientFlags({"http://eval.lan:8642/"}).server, "http://eval.lan:8642");
  EXPECT_EQ(Caught([] { ReadClientFlags({"ftp://x"}); }).kind(), ErrorKind::kUsage);
}

class ClientTest : public ::testing::Test {
 protected:
  void Start(uint16_t port = 0) {
    ApiOptions options;
    options.http.port = port;
    server_ = std::make_unique<ApiServer>(&service_, std::move(options));
  }
  Client Connect() { return Client({server_->url(), "", ""}); }

  TemporaryFolder folder_;
  test::MemoryService service_{folder_.path()};
  std::unique_ptr<ApiServer> server_;
};

TEST_F(ClientTest, AsksAndIsRefusedInTheServicesWords) {
  Start();
  Client client = Connect();
  const Json run = client.Post("/v1/runs", {{"yaml", "a: 1"}}, "k");
  EXPECT_EQ(client.Post("/v1/runs", {{"yaml", "a: 1"}}, "k").at("id"), run.at("id"));
  EXPECT_EQ(client.Get("/v1/runs/run-1").at("state"), "queued");
  const Error unknown = Caught([&] { client.Get("/v1/runs/none"); });
  EXPECT_EQ(unknown.kind(), ErrorKind::kUsage);
  EXPECT_THAT(unknown.what(), HasSubstr("no run has the id 'none'"));
  const Error refused = Caught([&] { client.Post("/v1/runs", {{"yaml", "refuse: 1"}}); });
  EXPECT_THAT(refused.what(), HasSubstr("leave it out"));
  service_.SetReady(false);
  EXPECT_EQ(Caught([&] { client.Get("/readyz"); }).kind(), ErrorKind::kInfrastructure);
  server_.reset();
  const Error away = Caught([&] { client.Get("/v1/runs"); });
  EXPECT_EQ(away.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(away.what(), HasSubstr("evald serve"));
}

// JSON cannot hold the text: the service would be told of another folder.
TEST_F(ClientTest, WhatIsNoTextIsNotSent) {
  Start();
  Client client = Connect();
  for (const auto& [body, member] : std::vector<std::pair<Json, std::string>>{
           {{{"base", "/tmp/caf\xe9"}, {"yaml", "a: 1"}}, "base"},
           {{{"set", {"a=1", "data_dir=/tmp/caf\xe9"}}}, "set"}}) {
    const Error refused = Caught([&, &body = body] { client.Post("/v1/runs", body); });
    EXPECT_EQ(refused.kind(), ErrorKind::kUsage);
    EXPECT_THAT(refused.what(), HasSubstr("'" + member + "' is not UTF-8: found '"));
    EXPECT_THAT(refused.what(), HasSubstr("/tmp/caf\\xe9'"));
  }
}

TEST_F(ClientTest, ASubmissionWithAKeyIsRepeatedAsTheServiceAsks) {
  std::atomic<int> asked{0};
  http_client::test::ScriptedServer server([&](const std::string&) {
    return ++asked % 2 == 1 ? http_client::test::Answer(429, "{}", "Retry-After: 1\r\n")
                            : http_client::test::Answer(201, R"({"id": "run-1"})");
  });
  Client client({server.url(""), "", ""});
  EXPECT_EQ(client.Post("/v1/runs", {{"yaml", "a: 1"}}, "k").at("id"), "run-1");
  const std::vector<std::string> sent = server.requests();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0], sent[1]);
  EXPECT_THAT(sent[0], HasSubstr("\r\nIdempotency-Key: k\r\n"));
  EXPECT_EQ(Caught([&] { client.Post("/v1/runs", {{"yaml", "a: 1"}}); }).kind(),
            ErrorKind::kInfrastructure);
  EXPECT_EQ(server.requests().size(), 3u) << "one without a key is made once";
}

TEST_F(ClientTest, FollowsOverARestartWithoutMissingOrRepeating) {
  Start();
  const uint16_t port = server_->port();
  service_.Submit({"a: 1"}, [](auto) {});
  Client client = Connect();
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) service_.Emit("run-1", "run.progress", {{"i", i}});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    server_.reset();
    for (int i = 10; i < 20; ++i) service_.Emit("run-1", "run.progress", {{"i", i}});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    Start(port);
    service_.Finish("run-1");
  });
  std::vector<int> sequences, expected;
  for (int i = 1; i <= 22; ++i) expected.push_back(i);
  client.Follow(
      "/v1/runs/run-1/events",
      [&](const Json& event) {
        sequences.push_back(event.at("sequence"));
        return event.at("data").value("state", "") != "done";
      },
      nullptr);
  other.join();
  EXPECT_EQ(sequences, expected);
}

TEST_F(ClientTest, FollowingEndsWhenTheServiceRefusesOrStaysAway) {
  Start();
  Client client = Connect();
  const auto all = [](const Json&) { return true; };
  EXPECT_EQ(Caught([&] { client.Follow("/v1/runs/none/events", all, nullptr); }).kind(),
            ErrorKind::kUsage);
  server_.reset();
  const Error away = Caught([&] { client.Follow("/v1/events", all, nullptr, 0.1); });
  EXPECT_EQ(away.kind(), ErrorKind::kInfrastructure);
}

TEST_F(ClientTest, FollowingCanBeStopped) {
  Start();
  Client client = Connect();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
  });
  client.Follow("/v1/events", [](const Json&) { return true; }, &stop);
  other.join();
}

}  // namespace
}  // namespace evald::cli

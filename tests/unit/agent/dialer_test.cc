// An agent's connection to servers that answer well, badly or in another protocol.
#include "orchestrator/agent/dialer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "orchestrator/fleet/loop.h"
#include "tests/unit/http_client/scripted_server.h"

namespace evald {
namespace {

using http_client::test::Answer;
using http_client::test::Script;
using http_client::test::ScriptedServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSwitch =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: evald-agent\r\nConnection: Upgrade\r\n\r\n";

// Why no wire came; "" if one came, whose first two lines are then in `lines`.
std::string Dial(const ScriptedServer& server, std::vector<std::string>* lines = nullptr) {
  Loop loop;
  Dialer dialer(&loop, {"", server.url(""), "a-token", ""});
  std::string reason = "not called";
  std::shared_ptr<Wire> held;
  dialer.Dial([&](std::shared_ptr<Wire> wire, const std::string& why) {
    reason = why;
    held = std::move(wire);
    if (!held || lines == nullptr) return loop.Stop();
    held->on_line = [&](const std::string& line) {
      lines->push_back(line);
      if (lines->size() == 2) loop.Stop();
    };
    held->Read();
  });
  loop.Run();
  EXPECT_EQ(held != nullptr, reason.empty());
  if (held) held->Close("");
  return reason;
}

TEST(Dialer, AsksForTheAgentsProtocolWithItsToken) {
  ScriptedServer server(
      [](const std::string&) { return Script{kSwitch, http_client::test::kPatience}; });
  EXPECT_EQ(Dial(server), "");
  const std::string sent = server.requests().at(0);
  EXPECT_TRUE(sent.starts_with("GET /v1/agents/connect HTTP/1.1\r\n")) << sent;
  for (const std::string& field :
       {"Host: " + server.url("").substr(7), std::string("Connection: Upgrade"),
        std::string("Upgrade: evald-agent"), std::string("Authorization: Bearer a-token")}) {
    EXPECT_THAT(sent, HasSubstr("\r\n" + field + "\r\n"));
  }
}

TEST(Dialer, WhatComesWithTheAnswerIsNotLost) {
  ScriptedServer server([](const std::string&) {
    return Script{kSwitch + "first\nsec", std::chrono::milliseconds(50), "ond\n"};
  });
  std::vector<std::string> lines;
  EXPECT_EQ(Dial(server, &lines), "");
  EXPECT_THAT(lines, ElementsAre("first", "second"));
}

TEST(Dialer, AnAnswerInPiecesIsOne) {
  ScriptedServer server([](const std::string&) {
    return Script{kSwitch.substr(0, 20), std::chrono::milliseconds(50),
                  kSwitch.substr(20) + "a\nb\n"};
  });
  EXPECT_EQ(Dial(server), "");
}

TEST(Dialer, ARefusalIsGivenInTheServersWords) {
  ScriptedServer problem([](const std::string&) {
    return Answer(403, R"({"title": "Forbidden", "detail": "needs the \"worker\" role"})");
  });
  EXPECT_EQ(Dial(problem), "status 403: needs the \"worker\" role");
  ScriptedServer chunked([](const std::string&) {
    return Script{
        "HTTP/1.1 503 Not Now\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n"
        "{\"detail\": \"not \r\n5\r\nnow\"}\r\n0\r\n\r\n"};
  });
  EXPECT_EQ(Dial(chunked), "status 503: not now");
  ScriptedServer page([](const std::string&) { return Answer(404, "<html>"); });
  EXPECT_EQ(Dial(page), "status 404");
}

TEST(Dialer, OtherProtocolsAreNotSpoken) {
  ScriptedServer other([](const std::string&) {
    return Script{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"};
  });
  EXPECT_THAT(Dial(other), HasSubstr("speaks 'websocket'"));
  ScriptedServer web([](const std::string&) { return Answer(200, "<html>"); });
  EXPECT_EQ(Dial(web), "status 200");
  ScriptedServer ssh([](const std::string&) { return Script{"SSH-2.0-OpenSSH_9\r\n\r\n"}; });
  EXPECT_NE(Dial(ssh), "");
  ScriptedServer mute([](const std::string&) { return Script{"", {}, "", true}; });
  EXPECT_NE(Dial(mute), "");
}

TEST(Dialer, AnAnswerWithoutEndIsRefused) {
  ScriptedServer server([](const std::string&) {
    return Script{"HTTP/1.1 101 Switching Protocols\r\nA: " + std::string(100'000, 'x')};
  });
  EXPECT_THAT(Dial(server), HasSubstr("limit"));
}

TEST(Dialer, AddressesThatAreNoneAreRefused) {
  Loop loop;
  const auto dial = [&](const std::string& server) { Dialer(&loop, {"", server, "", ""}); };
  for (const char* server :
       {"ftp://x", "http://10.0.0.1:1", "http://127.0.0.1:99999", "http://127.0.0.1:1/path",
        "https://user:word@a:1", "https://a:1?b", "http://localhost.evil.example:1", "https://"}) {
    EXPECT_THROW(dial(server), Error) << server;
  }
  for (const char* server : {"http://127.0.0.1:1", "http://localhost", "http://[::1]:1"}) {
    EXPECT_NO_THROW(dial(server)) << server;
  }
}

}  // namespace
}  // namespace evald

#include "protocol/agent_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/jsonl.h"
#include "evald/engine_info.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald::protocol {
namespace {

using testing::HasSubstr;

Json Engine() {
  EngineInfo info;
  info.name = "native";
  info.kinds = {RequestKind::kGenerateUntil};
  return ToJson(info);
}

std::vector<AgentMessage> OneOfEach() {
  HeldProcess held{"w0",  "evald-worker", {"--engine", "native"},
                   "tag", 4711,           Engine(),
                   true,  "f00d",         Json{{"engine", Engine()}, {"report", Json::object()}},
                   1};
  return {AgentHello{kAgentVersion,
                     "0.1.0",
                     "gpu1",
                     "aa",
                     12,
                     "bb",
                     7,
                     "cc",
                     {"cpu:0", "cpu:1"},
                     2,
                     3,
                     600.5,
                     4321,
                     "10.0.0.7",
                     "-----BEGIN",
                     "5ec2e7"},
          AgentWelcome{"bb", true, 9},
          AgentRefused{"another agent called 'gpu1' is connected"},
          AgentPing{123456789, 1000, 10},
          AgentPong{123456789, 5},
          AgentReady{{held, held}, {"f1", "f2"}},
          FromProcess{"w0", Want{2}},
          ProcessEnded{"w0", 0, 9, ""},
          AgentLeaving{},
          AgentLeft{},
          StartProcess{"w0", "evald-worker", {"--seed", "1"}, "tag"},
          ToProcess{
              "m0",
              Lease{7, 1, {Slice{"sums", "/p", "", 0, 3, "/g/7.1.jsonl", {"/g/6.1.jsonl.part"}}}}},
          KillProcess{"w0"},
          AgentStop{}};
}

std::string ErrorOf(const std::string& line) {
  return RefusalOf([&] { DecodeFrame(line); });
}

TEST(AgentMessages, EachComesBackAsItWas) {
  const std::vector<AgentMessage> messages = OneOfEach();
  ASSERT_EQ(messages.size(), std::variant_size_v<AgentMessage>);
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSERT_EQ(messages[i].index(), i);
    const std::string line = EncodeFrame(i, 2 * i, EncodeBody(messages[i]));
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    const Frame frame = DecodeFrame(line);
    EXPECT_EQ(frame.number, i);
    EXPECT_EQ(frame.ack, 2 * i);
    EXPECT_EQ(frame.message.index(), i) << line;
    EXPECT_EQ(EncodeFrame(i, 2 * i, EncodeBody(frame.message)), line);
  }
}

// Members that an agent of an earlier version does not send.
const std::set<std::string> kLaterAgentMembers = {"ends_in_s", "peer_port", "peer_host",
                                                  "peer_authority", "peer_secret"};

TEST(AgentMessages, AnAbsentOrWrongMemberIsNamedAlsoInsideAnEnvelope) {
  for (const AgentMessage& message : OneOfEach()) {
    const Json whole = ParseJson(EncodeFrame(1, 1, EncodeBody(message)), "test");
    for (const auto& [key, value] : whole.items()) {
      if (key == "type") continue;
      Json changed = whole;
      changed.erase(key);
      if (kLaterAgentMembers.count(key) > 0) {
        EXPECT_EQ(ErrorOf(ToLine(changed)), "") << key << " of an earlier version";
        continue;
      }
      EXPECT_THAT(ErrorOf(ToLine(changed)), HasSubstr(key));
    }
  }
  EXPECT_THAT(
      ErrorOf(
          R"({"number":1,"ack":0,"type":"from","process":"w0","message":{"type":"want","count":"1"}})"),
      HasSubstr("message 'want'"));
  EXPECT_THAT(ErrorOf(R"({"number":1,"ack":0,"type":"agent_ready","processes":[{"id":3}]})"),
              HasSubstr("processes[0]"));
  EXPECT_THAT(ErrorOf(R"({"number":1,"ack":0,"type":"agent_hullo"})"), HasSubstr("agent_hullo"));
  EXPECT_THAT(ErrorOf(R"({"number":-1,"ack":0,"type":"agent_stop"})"), HasSubstr("number"));
}

// An adopted process reports an engine that no later check looks at.
TEST(AgentMessages, WhatIsOutOfBoundsIsNamed) {
  const auto with = [](size_t index, const char* pointer, const Json& value) {
    Json message = ParseJson(EncodeFrame(1, 1, EncodeBody(OneOfEach()[index])), "test");
    message[Json::json_pointer(pointer)] = value;
    return ErrorOf(ToLine(message));
  };
  const Json held = ParseJson(EncodeBody(OneOfEach()[5]), "test")["processes"][0];
  const std::vector<std::tuple<size_t, const char*, Json>> wrong = {
      {0, "/name", std::string(5000, 'x')},
      {0, "/devices", std::vector<std::string>(1024, "cpu:0")},
      {0, "/metric_processes", -1},
      {0, "/metric_processes", 1024},
      {0, "/threads", -1},
      {0, "/peer_port", 65536},
      {0, "/peer_authority", std::string(20000, 'x')},
      {3, "/memory_free", -1},
      {5, "/processes/0/engine", 1},
      {5, "/processes/0/engine", Json::array()},
      {5, "/processes/0/engine/name", 1},
      {5, "/processes/0/loaded", 1},
      {5, "/processes/0/loaded", Json::object()},
      {5, "/processes/0/loaded/engine", Json::array()},
      {5, "/processes/0/loaded/engine", 1},
      {5, "/processes/0/loaded/engine/name", 1},
      {5, "/processes/0/loaded/engine/device", 1},
      {5, "/processes/0/loaded/report", 1},
      {5, "/processes/0/wants", -1},
      {5, "/processes/0/wants", 1 << 30},
      {5, "/processes/0/arguments", std::vector<std::string>(100, std::string(1000, 'x'))},
      {5, "/processes", std::vector<Json>(1000, held)},
      {5, "/staged", std::vector<std::string>(5000, "f1")},
      {5, "/staged", {std::string(5000, 'f')}},
      {6, "/message", {{"type", "want"}, {"count", -1}}},
      {6,
       "/message",
       {{"type", "hello"},
        {"version", 1},
        {"role", "metric"},
        {"id", "w0"},
        {"pid", 1},
        {"engine", {{"follows", 1}}}}},
      {6, "/process", std::string(5000, 'x')}};
  for (const auto& [index, pointer, value] : wrong) {
    EXPECT_NE(with(index, pointer, value), "")
        << index << " " << pointer << " " << ToLine(value).substr(0, 40);
  }
}

TEST(AgentMessages, NamesOfHosts) {
  for (const char* good : {"gpu1", "node-07_a", "A"}) EXPECT_TRUE(IsHostName(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string("a.b"), std::string("../x"), std::string(64, 'a')}) {
    EXPECT_FALSE(IsHostName(bad)) << bad;
  }
}

}  // namespace
}  // namespace evald::protocol

#include "orchestrator/fleet/conversation.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace evald {
namespace {

using protocol::AgentMessage;
using protocol::KillProcess;

// The near end of a wire. The test is the far end.
struct TestWire : Wire {
  void Read() override {}
  void Send(std::string line) override { sent.push_back(line); }
  void Close(const std::string& why) override {
    if (closed) return;
    closed = true;
    if (const auto notify = std::move(on_closed)) notify(why);
  }
  std::vector<std::string> sent;
  bool closed = false;
};

class ConversationTest : public testing::Test {
 protected:
  std::shared_ptr<TestWire> Connect(uint64_t peer_received) {
    auto wire = std::make_shared<TestWire>();
    EXPECT_TRUE(conversation_.Attach(
        wire, peer_received,
        {[this](const AgentMessage& m) { heard_.push_back(std::get<KillProcess>(m).process); },
         [this](const std::string& why) { cut_ = why; }},
        MonotonicMicros()));
    return wire;
  }
  static std::string Line(uint64_t number, uint64_t ack, const std::string& text) {
    std::string line = protocol::EncodeFrame(number, ack, protocol::EncodeBody(KillProcess{text}));
    line.pop_back();
    return line;
  }

  Conversation conversation_{{5'000'000, 1'000'000}};
  std::vector<std::string> heard_;
  std::string cut_ = "-";
};

TEST_F(ConversationTest, WhatWasSaidWithoutAConnectionIsSentWithTheNext) {
  conversation_.Send(KillProcess{"a"});
  conversation_.SendLoose(KillProcess{"worth nothing later"});
  const auto first = Connect(0);
  ASSERT_EQ(first->sent.size(), 1u);
  conversation_.Send(KillProcess{"b"});
  EXPECT_EQ(first->sent.size(), 2u);
  first->Close("cut");
  EXPECT_EQ(cut_, "cut");
  EXPECT_FALSE(conversation_.attached());
  const auto second = Connect(1);  // the peer had "a"
  ASSERT_EQ(second->sent.size(), 1u);
  EXPECT_NE(second->sent[0].find("\"b\""), std::string::npos);
}

TEST_F(ConversationTest, RepeatedAndOvertakenLinesAreDeliveredOnceAndInOrder) {
  const auto wire = Connect(0);
  for (const auto& [number, text] : std::vector<std::pair<uint64_t, std::string>>{
           {2, "b"}, {1, "a"}, {2, "b"}, {1, "a"}, {3, "c"}}) {
    wire->on_line(Line(number, 0, text));
  }
  EXPECT_EQ(heard_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(conversation_.received(), 3u);
}

TEST_F(ConversationTest, ASilentConnectionAndOneThatLostSomethingAreCut) {
  auto wire = Connect(0);
  const int64_t now = MonotonicMicros();
  conversation_.Tick(now + 4'000'000);
  EXPECT_TRUE(conversation_.attached());
  conversation_.Tick(now + 6'000'000);
  EXPECT_FALSE(conversation_.attached());
  EXPECT_NE(cut_.find("silent"), std::string::npos);
  wire = Connect(0);
  wire->on_line(Line(2, 0, "b"));
  conversation_.Tick(MonotonicMicros() + 2'000'000);
  EXPECT_FALSE(conversation_.attached());
  EXPECT_NE(cut_.find("message 1 did not come"), std::string::npos);
}

TEST_F(ConversationTest, WhatMakesNoSenseCutsTheConnection) {
  Connect(0)->on_line("half a li");
  EXPECT_FALSE(conversation_.attached());
  EXPECT_NE(cut_.find("protocol"), std::string::npos);
  Connect(0)->on_line(Line(1, 7, "a"));
  EXPECT_NE(cut_.find("acknowledges message 7"), std::string::npos);
  EXPECT_TRUE(heard_.empty());
  auto wire = std::make_shared<TestWire>();
  EXPECT_FALSE(conversation_.Attach(wire, 3, {}, 0)) << "it has more than was sent";
}

// The holder of a worker token could read and never acknowledge. Every message would be kept to be
// sent again.
TEST(Conversation, WithAPeerThatAcknowledgesNothingIsLost) {
  Conversation conversation({.unacknowledged_bytes_max = 10'000});
  std::string cut = "-";
  const Conversation::Handlers handlers{[](const AgentMessage&) {},
                                        [&](const std::string& why) { cut = why; }};
  ASSERT_TRUE(conversation.Attach(std::make_shared<TestWire>(), 0, handlers, MonotonicMicros()));
  for (int i = 0; i < 1000; ++i) conversation.Send(KillProcess{std::string(100, 'x')});
  EXPECT_TRUE(conversation.lost());
  EXPECT_EQ(conversation.waiting(), 0u);
  EXPECT_EQ(cut, "-") << "whoever sends does not expect the connection to end meanwhile";
  conversation.Tick(MonotonicMicros());
  EXPECT_NE(cut.find("acknowledged"), std::string::npos) << cut;
  EXPECT_FALSE(conversation.Attach(std::make_shared<TestWire>(), 0, handlers, MonotonicMicros()))
      << "it begins anew";
  conversation.Reset();
  EXPECT_TRUE(conversation.Attach(std::make_shared<TestWire>(), 0, handlers, MonotonicMicros()));
}

TEST_F(ConversationTest, ANewerConnectionReplacesTheOlder) {
  const auto older = Connect(0);
  const auto newer = Connect(0);
  EXPECT_TRUE(older->closed);
  conversation_.Send(KillProcess{"a"});
  EXPECT_EQ(newer->sent.size(), 1u);
  EXPECT_TRUE(older->sent.empty());
}

}  // namespace
}  // namespace evald

#include "orchestrator/fleet/link.h"

#include <gtest/gtest.h>

#include <random>

namespace evald {
namespace {

using protocol::AgentMessage;
using protocol::KillProcess;

std::string Text(const AgentMessage& message) { return std::get<KillProcess>(message).process; }
AgentMessage Say(const std::string& text) { return KillProcess{text}; }

std::vector<std::string> Texts(const std::vector<AgentMessage>& messages) {
  std::vector<std::string> texts;
  for (const AgentMessage& message : messages) texts.push_back(Text(message));
  return texts;
}

TEST(Link, DeliversOnceAndInOrder) {
  Link link;
  EXPECT_TRUE(link.Take(2, Say("b")).empty());
  EXPECT_TRUE(link.gap());
  EXPECT_TRUE(link.Take(4, Say("d")).empty());
  EXPECT_EQ(Texts(link.Take(1, Say("a"))), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(link.received(), 2u);
  EXPECT_TRUE(link.gap());
  EXPECT_TRUE(link.Take(1, Say("a")).empty()) << "came before";
  EXPECT_TRUE(link.Take(2, Say("b")).empty());
  EXPECT_EQ(Texts(link.Take(3, Say("c"))), (std::vector<std::string>{"c", "d"}));
  EXPECT_FALSE(link.gap());
}

TEST(Link, KeepsWhatIsNotAcknowledged) {
  Link link;
  EXPECT_EQ(link.Push("a"), 1u);
  EXPECT_EQ(link.Push("b"), 2u);
  EXPECT_EQ(link.Push("c"), 3u);
  EXPECT_TRUE(link.Acknowledge(2));
  ASSERT_EQ(link.unacknowledged().size(), 1u);
  EXPECT_EQ(link.unacknowledged()[0].number, 3u);
  EXPECT_TRUE(link.Acknowledge(1)) << "an old acknowledgement, overtaken";
  EXPECT_FALSE(link.Acknowledge(4)) << "of what was never sent";
  EXPECT_EQ(link.unacknowledged().size(), 1u);
}

TEST(Link, WhatComesTooEarlyTakesBoundedMemory) {
  Link link;
  const size_t line = size_t{1} << 20;
  for (uint64_t number = 2; number < 4000; ++number) link.Take(number, Say("early"), line);
  EXPECT_EQ(link.early_bytes(), Link::kEarlyBytesMax);
  const size_t kept = Link::kEarlyBytesMax / line;
  EXPECT_EQ(link.Take(1, Say("a"), line).size(), kept + 1) << "the others have to be sent again";
  EXPECT_EQ(link.early_bytes(), 0u);
  EXPECT_EQ(link.received(), kept + 1);
}

TEST(Link, AResetForgetsEverything) {
  Link link;
  link.Push("a");
  link.Take(1, Say("x"));
  link.Take(3, Say("z"));
  link.Reset();
  EXPECT_EQ(link.received(), 0u);
  EXPECT_FALSE(link.gap());
  EXPECT_TRUE(link.unacknowledged().empty());
  EXPECT_EQ(link.Push("b"), 1u);
}

// Two ends over a network. The network loses all messages under way when a connection ends. Before
// that it delivers messages in any order and more than once. Each end's messages still arrive once
// and in order.
class Network {
 public:
  explicit Network(unsigned seed) : random_(seed) {}

  void Say(int end, const std::string& text) {
    said_[end].push_back(text);
    const uint64_t number = ends_[end].Push(text);
    Carry(end, number, text);
  }
  void Deliver() {
    for (int end : {0, 1}) {
      if (flying_[end].empty()) continue;
      const size_t which = random_() % flying_[end].size();
      const Flying one = flying_[end][which];
      // otherwise the message is delivered again later
      if (random_() % 4 != 0) flying_[end].erase(flying_[end].begin() + static_cast<long>(which));
      Link& to = ends_[1 - end];
      ASSERT_TRUE(to.Acknowledge(one.ack));
      for (const AgentMessage& message : to.Take(one.number, ::evald::Say(one.text)))
        heard_[1 - end].push_back(Text(message));
    }
  }
  void Reconnect() {
    for (int end : {0, 1}) flying_[end].clear();
    for (int end : {0, 1}) {
      ASSERT_TRUE(ends_[end].Acknowledge(ends_[1 - end].received()));
      for (const Link::Kept& kept : ends_[end].unacknowledged()) Carry(end, kept.number, kept.body);
    }
  }
  bool quiet() const { return flying_[0].empty() && flying_[1].empty(); }
  std::mt19937& random() { return random_; }
  void Check() const {
    EXPECT_EQ(heard_[1], said_[0]);
    EXPECT_EQ(heard_[0], said_[1]);
  }

 private:
  struct Flying {
    uint64_t number, ack;
    std::string text;
  };
  void Carry(int end, uint64_t number, const std::string& text) {
    flying_[end].push_back({number, ends_[end].received(), text});
  }

  std::mt19937 random_;
  Link ends_[2];
  std::vector<Flying> flying_[2];
  std::vector<std::string> said_[2], heard_[2];
};

TEST(Link, EveryInterleavingOfLossReorderingAndRepetitionEndsWell) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Network network(seed);
    for (int step = 0; step < 200; ++step) {
      const unsigned what = network.random()() % 10;
      if (what < 4) network.Say(static_cast<int>(what % 2), std::to_string(step));
      if (what >= 4 && what < 9) network.Deliver();
      if (what == 9 && network.random()() % 4 == 0) network.Reconnect();
    }
    network.Reconnect();
    while (!network.quiet()) network.Deliver();
    network.Check();
  }
}

}  // namespace
}  // namespace evald

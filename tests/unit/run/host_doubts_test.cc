#include "orchestrator/run/host_doubts.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

const HostDoubts::Refusal kLoad{"load", ErrorKind::kInput, "no"};

Witness Agent(const std::string& host, const std::string& owner) { return {host, owner, false}; }

TEST(HostDoubts, TheServicesOwnHostIsBelieved) {
  HostDoubts doubts;
  EXPECT_TRUE(doubts.Refused({"local", "", true}, kLoad));
  EXPECT_TRUE(doubts.Failed({"local", "", true}));
  EXPECT_TRUE(doubts.hosts().empty());
}

TEST(HostDoubts, OneAgentsRefusalIsBelievedOnceAnotherTokensAgentSaysTheSame) {
  HostDoubts doubts;
  EXPECT_FALSE(doubts.Refused(Agent("gpu1", "wk"), kLoad));
  EXPECT_TRUE(doubts.doubted(Agent("gpu1", "wk")));
  EXPECT_FALSE(doubts.Refused(Agent("gpu2", "wk"), kLoad))
      << "a token may have many names of hosts";
  EXPECT_FALSE(doubts.Refused(Agent("gpu3", "other"), {"task sums", ErrorKind::kInput, "no"}))
      << "something else";
  EXPECT_FALSE(doubts.doubted(Agent("gpu4", "other")));
  EXPECT_TRUE(doubts.Refused(Agent("gpu4", "other"), kLoad));
}

TEST(HostDoubts, WhatIsTheHostsOwnFaultIsSaidOfThisHostAlone) {
  const HostDoubts::Refusal room{"load", ErrorKind::kInfrastructure, "no room"};
  HostDoubts doubts;
  EXPECT_FALSE(doubts.Refused(Agent("gpu1", "one"), room));
  EXPECT_FALSE(doubts.Refused(Agent("gpu2", "other"), room));
  EXPECT_FALSE(doubts.doubted(Agent("gpu3", "third")));
  EXPECT_EQ(doubts.Settle().size(), 1U) << "nobody else is left";
}

TEST(HostDoubts, SoManyFailuresOfAHostDoNotCountAndThenItGetsNothingMore) {
  HostDoubts doubts;
  for (int i = 0; i < HostDoubts::kFailuresMax; ++i) {
    EXPECT_FALSE(doubts.doubted(Agent("gpu1", "wk")));
    EXPECT_FALSE(doubts.Failed(Agent("gpu1", "wk")));
  }
  EXPECT_TRUE(doubts.doubted(Agent("gpu1", "wk")));
  EXPECT_FALSE(doubts.doubted(Agent("gpu2", "wk")));
}

TEST(HostDoubts, WhereNoOtherHostIsLeftTheDoubtedOnesAreBelieved) {
  HostDoubts doubts;
  EXPECT_FALSE(doubts.Refused(Agent("gpu1", "wk"), kLoad));
  const auto refusals = doubts.Settle();
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].what, "load");
  EXPECT_FALSE(doubts.doubted(Agent("gpu1", "wk")));
  EXPECT_TRUE(doubts.Refused(Agent("gpu1", "wk"), kLoad));
  EXPECT_TRUE(doubts.Failed(Agent("gpu1", "wk")));
  EXPECT_TRUE(doubts.Settle().empty());
}

TEST(HostDoubts, AHostThatDoesNothingIsDoubtedWhateverWasSettled) {
  HostDoubts doubts;
  doubts.Stalled({"local", "", true});
  EXPECT_TRUE(doubts.hosts().empty()) << "the service's own host";
  for (int i = 0; i < 2; ++i) {
    doubts.Stalled({"liar", "w1", false});
    EXPECT_TRUE(doubts.doubted(Agent("liar", "w1")));
    EXPECT_TRUE(doubts.Settle().empty()) << "it refused nothing";
    EXPECT_FALSE(doubts.doubted(Agent("liar", "w1"))) << "nobody else is left";
  }
}

TEST(HostDoubts, TheSecondHostOfATokenThatDoesNothingMakesAllItsHostsDoubted) {
  HostDoubts doubts;
  doubts.Stalled(Agent("a", "w1"));
  doubts.Stalled(Agent("a", "w1"));
  EXPECT_FALSE(doubts.doubted(Agent("b", "w1"))) << "one host of a cluster may hang";
  doubts.Stalled(Agent("b", "w1"));
  EXPECT_TRUE(doubts.doubted(Agent("c", "w1")));
  EXPECT_FALSE(doubts.doubted(Agent("d", "w2")));
  EXPECT_EQ(doubts.owners(), std::set<std::string>{"w1"});
  doubts.Settle();
  EXPECT_FALSE(doubts.any());
  EXPECT_FALSE(doubts.doubted(Agent("c", "w1")));
}

// Without tokens, agents and the own host have the same name of a token.
TEST(HostDoubts, TheServicesOwnHostIsNoHostOfAToken) {
  HostDoubts doubts;
  doubts.Stalled(Agent("a", ""));
  doubts.Stalled(Agent("b", ""));
  EXPECT_TRUE(doubts.doubted(Agent("c", "")));
  EXPECT_FALSE(doubts.doubted({"local", "", true}));
}

}  // namespace
}  // namespace evald

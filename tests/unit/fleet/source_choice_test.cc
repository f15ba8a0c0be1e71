#include "orchestrator/fleet/source_choice.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "orchestrator/fleet/checkpoint_sources.h"

namespace evald {
namespace {

constexpr int64_t kSecondMicros = 1'000'000;
constexpr int64_t kChunksInAll = 1000;

class SourceChoiceTest : public testing::Test {
 protected:
  void Join(const std::vector<std::string>& agents, bool serves = true) {
    for (const std::string& agent : agents) choice_.Join(agent, "token", serves);
  }
  std::string Ask(const std::string& agent, int64_t have = 0, const std::string& current = "") {
    return choice_.Choose({agent, "f", have, kChunksInAll, current, "", SourceFault::kNone}, now_);
  }
  std::string Failed(const std::string& agent, const std::string& source, SourceFault fault) {
    return choice_.Choose({agent, "f", 10, kChunksInAll, "", source, fault}, now_);
  }

  SourceChoice choice_;
  int64_t now_ = kSecondMicros;
};

TEST_F(SourceChoiceTest, HostsThatComeTogetherMakeAChain) {
  Join({"a", "b", "c", "d"});
  EXPECT_EQ(Ask("c"), kServiceSource);
  EXPECT_EQ(Ask("a"), "c");
  EXPECT_EQ(Ask("d"), "a");
  EXPECT_EQ(Ask("b"), "d");
  for (int64_t have = 100; have < kChunksInAll; have += 100) {  // all go on as they began
    now_ += 2 * kSecondMicros;
    EXPECT_EQ(Ask("c", have, kServiceSource), kServiceSource);
    EXPECT_EQ(Ask("a", have - 5, "c"), "c");
    EXPECT_EQ(Ask("d", have - 10, "a"), "a");
    EXPECT_EQ(Ask("b", have - 15, "d"), "d");
  }
}

TEST_F(SourceChoiceTest, AHostThatHasItGivesItAndSparesTheService) {
  Join({"a", "b", "c"});
  choice_.Holds("a", "f");
  EXPECT_EQ(Ask("b"), "a");
  choice_.Done("b", "f");
  EXPECT_TRUE(Ask("c") == "a" || Ask("c") == "b");
}

TEST_F(SourceChoiceTest, NobodyFetchesFromAHostOfAnotherTokenNorFromOneThatDoesNotServe) {
  choice_.Join("a", "token", true);
  choice_.Join("b", "other", true);
  choice_.Join("c", "token", false);
  choice_.Holds("c", "f");
  EXPECT_EQ(Ask("a"), kServiceSource);
  EXPECT_EQ(Ask("b"), kServiceSource);
  EXPECT_EQ(Ask("c"), "a");
}

TEST_F(SourceChoiceTest, TheServiceGivesToFewAtOnceAndToOthersInTheirOrder) {
  Join({"a", "b", "c", "d", "e", "f", "g"}, false);
  for (const char* agent : {"a", "b", "c", "d"}) EXPECT_EQ(Ask(agent), kServiceSource);
  EXPECT_EQ(Ask("g"), "");
  now_ += kSecondMicros;
  EXPECT_EQ(Ask("e"), "");
  choice_.Done("b", "f");
  EXPECT_EQ(Ask("e"), "") << "g came first";
  EXPECT_EQ(Ask("g"), kServiceSource);
  EXPECT_EQ(Ask("e"), "");
  now_ += SourceChoice::kHeardMicros + kSecondMicros;  // the others are not heard of any more
  EXPECT_EQ(Ask("e"), kServiceSource);
}

TEST_F(SourceChoiceTest, ASourceThatFailedIsNotGivenAgain) {
  Join({"a", "b", "c"});
  choice_.Holds("a", "f");
  EXPECT_EQ(Ask("b"), "a");
  EXPECT_EQ(Failed("b", "a", SourceFault::kSilent), kServiceSource);
  EXPECT_EQ(Ask("b", 20, kServiceSource), kServiceSource);
  EXPECT_EQ(Ask("c"), "a") << "it may serve others";
}

TEST_F(SourceChoiceTest, WhoGaveWrongBytesOrHasItNoMoreGivesItToNobody) {
  for (const SourceFault fault : {SourceFault::kWrong, SourceFault::kGone}) {
    choice_ = {};
    Join({"a", "b", "c"});
    choice_.Holds("a", "f");
    EXPECT_EQ(Ask("b"), "a");
    EXPECT_EQ(Failed("b", "a", fault), kServiceSource);
    EXPECT_EQ(Ask("c"), "b");
  }
}

TEST_F(SourceChoiceTest, BehindAFirewallTheServiceIsSoonTheOnlySource) {
  std::vector<std::string> names = {"z"};
  for (char c = 'a'; c < 'k'; ++c) names.emplace_back(1, c);
  Join(names);
  for (const std::string& name : names) {
    if (name != "z") choice_.Holds(name, "f");
  }
  std::string source = Ask("z");
  size_t tries = 0;
  for (; source != kServiceSource; ++tries) source = Failed("z", source, SourceFault::kUnreachable);
  EXPECT_EQ(tries, SourceChoice::kUnreachableMax);
  now_ += SourceChoice::kUnreachableMicros + kSecondMicros;
  EXPECT_NE(Ask("z"), kServiceSource) << "the firewall may be open by now";
}

TEST_F(SourceChoiceTest, WhomNobodyReachesIsLeftAlone) {
  Join({"a", "b", "c", "d", "e"});
  choice_.Holds("a", "f");
  for (const char* agent : {"b", "c", "d"}) {
    EXPECT_EQ(Ask(agent), "a");
    Failed(agent, "a", SourceFault::kUnreachable);
    choice_.Leave("none");
  }
  EXPECT_NE(Ask("e"), "a");
}

TEST_F(SourceChoiceTest, AHostThatIsAwayOrHasLeftIsNoSource) {
  Join({"a", "b", "c"});
  choice_.Holds("a", "f");
  choice_.SetConnected("a", false);
  EXPECT_EQ(Ask("b"), kServiceSource);
  choice_.SetConnected("a", true);
  EXPECT_EQ(Ask("c"), "a");
  choice_.Leave("a");
  EXPECT_EQ(Ask("c", 10, "a"), "b") << "also in the middle";
}

TEST_F(SourceChoiceTest, NobodyFetchesInARing) {
  Join({"a", "b", "c"});
  EXPECT_EQ(Ask("a"), kServiceSource);
  EXPECT_EQ(Ask("b"), "a");
  EXPECT_EQ(Ask("c"), "b");
  EXPECT_EQ(Failed("b", "a", SourceFault::kSilent), kServiceSource) << "c fetches from b";
}

// The slow host is c. Hosts after it would get no more than it does.
TEST_F(SourceChoiceTest, ASlowHostHoldsUpNobodyElse) {
  Join({"a", "b", "c", "d"});
  EXPECT_EQ(Ask("a"), kServiceSource);
  EXPECT_EQ(Ask("b"), "a");
  EXPECT_EQ(Ask("c"), "b");
  EXPECT_EQ(Ask("d"), "c");
  EXPECT_EQ(Ask("a", 900, kServiceSource), kServiceSource);
  EXPECT_EQ(Ask("b", 890, "a"), "a");
  EXPECT_EQ(Ask("c", 20, "b"), "b");
  EXPECT_EQ(Ask("d", 19, "c"), "c") << "all others give to somebody";
  choice_.Done("a", "f");
  choice_.Done("b", "f");
  EXPECT_EQ(Ask("d", 21, "c"), "a") << "it has given all to b, and is idle";
  EXPECT_EQ(Ask("c", 25, "b"), "b") << "its source has more for it";
}

TEST_F(SourceChoiceTest, WhoeverAsksHasNothingWhateverItHadBefore) {
  Join({"a", "b"});
  choice_.Holds("a", "f");
  EXPECT_EQ(Ask("a"), kServiceSource);
  EXPECT_EQ(Ask("b"), "a") << "as one that fetches";
}

// ---- with addresses

TEST(CheckpointSources, AnAgentGetsTheAddressAndTheTokenOfItsSource) {
  CheckpointSources sources;
  for (const char* instance : {"one", "two"}) sources.Begin(instance, "token");
  sources.Offers("one", {PeerUrl("10.0.0.7", 4000), "PEM", "secret"});
  sources.Holds("one", {"f00d"});
  const CheckpointSource source = sources.Choose("two", "f00d", {0, 10, "", "", {}});
  EXPECT_EQ(source.from, CheckpointSource::From::kAgent);
  EXPECT_EQ(source.url, "https://10.0.0.7:4000");
  EXPECT_EQ(source.authority, "PEM");
  EXPECT_EQ(source.token, PeerToken("secret", "f00d"));
  EXPECT_NE(source.token, PeerToken("secret", "beef"));
  const CheckpointSource next =
      sources.Choose("two", "f00d", {3, 10, "", source.url, SourceFault::kWrong});
  EXPECT_EQ(next.from, CheckpointSource::From::kService);
  sources.End("one");
  EXPECT_EQ(sources.Choose("two", "f00d", {3, 10, source.url, "", {}}).from,
            CheckpointSource::From::kService);
}

TEST(CheckpointSources, AgentsOfLaunchedJobsFetchFromEachOther) {
  CheckpointSources sources;
  sources.Begin("one", "job:slurm-1");
  sources.Begin("two", "job:slurm-2");
  sources.Begin("three", "a person's");
  sources.Offers("one", {"https://a:1", "PEM", "secret"});
  sources.Holds("one", {"f00d"});
  EXPECT_EQ(sources.Choose("two", "f00d", {0, 10, "", "", {}}).url, "https://a:1");
  EXPECT_EQ(sources.Choose("three", "f00d", {0, 10, "", "", {}}).url, "");
}

TEST(CheckpointSources, TwoAgentsOfOneAddressAreNotMixedUp) {
  CheckpointSources sources;
  for (const char* instance : {"old", "new", "me"}) sources.Begin(instance, "token");
  for (const char* instance : {"old", "new"}) {
    sources.Offers(instance, {"https://a:1", "PEM", std::string("secret of ") + instance});
    sources.Holds(instance, {"f00d"});
  }
  EXPECT_EQ(sources.Choose("me", "f00d", {0, 10, "", "", {}}).token,
            PeerToken("secret of new", "f00d"));
}

TEST(CheckpointSources, OnlyAHostAndAPortMakeAUrl) {
  EXPECT_EQ(PeerUrl("node7.example", 1), "https://node7.example:1");
  EXPECT_EQ(PeerUrl("fd00::7", 1), "https://[fd00::7]:1");
  for (const char* host : {"", "a/b", "a@b", "a:1", "-a", "a b", "[::1]", "a?b", "a#b"})
    EXPECT_EQ(PeerUrl(host, 1), "") << host;
  EXPECT_EQ(PeerUrl("node7", 0), "");
}

}  // namespace
}  // namespace evald

#include "orchestrator/fleet/source_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "orchestrator/fleet/checkpoint_sources.h"

namespace evald {
namespace {

constexpr int64_t kSecondMicros = 1'000'000;
constexpr int64_t kChunksInAll = 1000;

int LinesWith(const std::string& log, const std::string& word) {
  std::istringstream lines(log);
  int found = 0;
  for (std::string line; std::getline(lines, line);)
    found += line.find(word) != std::string::npos ? 1 : 0;
  return found;
}

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
  choice_.Done("b", "f", now_);
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
  choice_.Done("b", "f", now_);
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

// One agent alone may lie. It is not sent there again itself.
TEST_F(SourceChoiceTest, WhatTwoAgentsSayOfASourceIsBelieved) {
  for (const SourceFault fault : {SourceFault::kWrong, SourceFault::kGone}) {
    choice_ = {};
    Join({"a", "d", "e"});
    Join({"b", "c"}, false);
    choice_.Holds("a", "f");
    EXPECT_EQ(Ask("b"), "a");
    EXPECT_EQ(Failed("b", "a", fault), kServiceSource);
    EXPECT_EQ(Failed("b", "a", fault), kServiceSource) << "as often as it likes";
    EXPECT_FALSE(choice_.IsSetAside("a", "f"));
    EXPECT_EQ(Ask("c"), "a");
    EXPECT_NE(Failed("c", "a", fault), "a");
    EXPECT_EQ(choice_.IsSetAside("a", "f"), fault == SourceFault::kWrong);
    EXPECT_NE(Ask("d"), "a");
    EXPECT_NE(Ask("e"), "a");
    choice_.Done("a", "f", now_);  // it has fetched it anew
    EXPECT_EQ(Ask("e", 10), "a");
  }
}

TEST_F(SourceChoiceTest, AnAgentThatStartsAgainIsNoSecondOne) {
  Join({"a", "c"});
  Join({"b"}, false);
  choice_.Holds("a", "f");
  EXPECT_EQ(Ask("b"), "a");
  Failed("b", "a", SourceFault::kWrong);
  choice_.Leave("b");
  Join({"b"}, false);
  EXPECT_EQ(Ask("b"), "a");
  Failed("b", "a", SourceFault::kWrong);
  EXPECT_EQ(Ask("c"), "a");
}

TEST_F(SourceChoiceTest, OnlyWhoWasSentToASourceIsHeardOnIt) {
  for (const SourceFault fault :
       {SourceFault::kWrong, SourceFault::kGone, SourceFault::kUnreachable}) {
    choice_ = {};
    Join({"a", "b"});
    Join({"x", "y", "z"}, false);
    choice_.Holds("a", "f");
    EXPECT_EQ(Ask("b"), "a");
    for (const char* liar : {"x", "y", "z"})
      EXPECT_NE(Failed(liar, "a", fault), "a") << "for itself it is believed";
    EXPECT_EQ(Ask("b", 10, "a"), "a");
  }
}

TEST_F(SourceChoiceTest, WhoIsAccusedIsTheLastToBeAskedOfThoseAlike) {
  Join({"a", "b", "c", "d"});
  for (const char* agent : {"a", "b"}) choice_.Holds(agent, "f");
  EXPECT_EQ(Ask("c"), "a");
  EXPECT_EQ(Failed("c", "a", SourceFault::kWrong), "b");
  choice_.Done("c", "f", now_);
  EXPECT_EQ(Ask("d"), "b");
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
  choice_.Done("a", "f", now_);
  choice_.Done("b", "f", now_);
  EXPECT_EQ(Ask("d", 21, "c"), "a") << "it has given all to b, and is idle";
  EXPECT_EQ(Ask("c", 25, "b"), "b") << "its source has more for it";
}

TEST_F(SourceChoiceTest, WhoeverAsksHasNothingWhateverItHadBefore) {
  Join({"a", "b"});
  choice_.Holds("a", "f");
  EXPECT_EQ(Ask("a"), kServiceSource);
  EXPECT_EQ(Ask("b"), "a") << "as one that fetches";
}

// ---- rates

// Links that give chunks at rates of their own, and agents that ask every two seconds.
class SourceRatesTest : public SourceChoiceTest {
 protected:
  static constexpr int64_t kStepMicros = 100'000;
  static constexpr int64_t kAskMicros = 2'000'000;

  struct Host {
    double have = 0;
    std::string source;
    int64_t asked_us = 0;
    std::vector<std::string> sources;  // all that it was sent to
    bool done = false;
  };

  void Come(const std::string& name, double rate) {
    if (choice_.WasSentTo(name, fingerprint_, "")) return;
    choice_.Join(name, "token", true);
    links_[name] = rate;
  }
  void Fetch(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      hosts_[name] = {};
      hosts_[name].asked_us = now_ - kAskMicros + static_cast<int64_t>(hosts_.size()) * 77'000;
    }
  }
  int64_t HaveOf(const std::string& name) const {
    const auto host = hosts_.find(name);
    return host == hosts_.end() ? total_ : static_cast<int64_t>(host->second.have);
  }
  void AskAgain(const std::string& name, Host* host) {
    host->asked_us = now_;
    const std::string next = choice_.Choose(
        {name, fingerprint_, HaveOf(name), total_, host->source, "", SourceFault::kNone}, now_);
    if (!next.empty() && next != host->source) host->sources.push_back(next);
    if (!next.empty()) host->source = next;
  }
  // Each source's link is shared by those that fetch from it, and so is each fetcher's own. Two
  // chunks are always under way.
  void Step() {
    now_ += kStepMicros;
    std::map<std::string, int> loads;
    for (const auto& [name, host] : hosts_) {
      if (!host.done) ++loads[host.source];
    }
    for (auto& [name, host] : hosts_) {
      if (host.done) continue;
      if (now_ - host.asked_us >= kAskMicros) AskAgain(name, &host);
      if (host.source.empty()) continue;
      const double rate =
          std::min(links_[name], links_[host.source] / std::max(1, loads[host.source]));
      double most = static_cast<double>(total_);
      if (host.source != kServiceSource && hosts_.count(host.source) > 0 &&
          !hosts_[host.source].done)
        most = std::max(host.have, hosts_[host.source].have - 2);
      host.have = std::min(most, host.have + rate * 1e-6 * kStepMicros);
      if (HaveOf(name) < total_) continue;
      host.done = true;
      choice_.Done(name, fingerprint_, now_);
    }
  }
  bool AllDone() const {
    return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& h) { return h.second.done; });
  }
  // The seconds until all have it, at most `most_s`.
  double Run(double most_s) {
    const int64_t begin = now_;
    while (!AllDone() && static_cast<double>(now_ - begin) < 1e6 * most_s) Step();
    return 1e-6 * static_cast<double>(now_ - begin);
  }

  std::string fingerprint_ = "f";
  int64_t total_ = kChunksInAll;
  std::map<std::string, double> links_ = {{kServiceSource, 10}};
  std::map<std::string, Host> hosts_;
};

// However slow all links are, a chain is right: whoever moves takes a part of a link from others.
TEST_F(SourceRatesTest, AmongLinksThatAreAlikeNobodyMoves) {
  for (const double rate : {0.4, 2.0, 5.0, 20.0, 100.0, 1000.0}) {
    for (const int count : {1, 2, 3, 5, 9, 16}) {
      if (count * 2 / rate > 30) continue;  // agents leave a source that brings nothing for so long
      for (const bool held : {false, true}) {
        choice_ = {};
        hosts_.clear();
        links_ = {{kServiceSource, rate}};
        total_ = static_cast<int64_t>(200 * rate);
        std::vector<std::string> names;
        for (int i = 0; i < count; ++i) names.push_back("h" + std::to_string(i));
        for (const std::string& name : names) Come(name, rate);
        for (const char* fingerprint : {"f", "g"}) {  // the second time the rates are known
          fingerprint_ = fingerprint;
          std::vector<std::string> fetchers = names;
          if (held) {
            choice_.Holds(names[0], fingerprint_);
            fetchers.erase(fetchers.begin());
          }
          hosts_.clear();
          Fetch(fetchers);
          const double took_s = Run(10'000);
          EXPECT_TRUE(AllDone());
          size_t moves = 0;
          for (const auto& [name, host] : hosts_) moves += host.sources.size() - 1;
          // Where a host held it, the first that starves may take the service, which gives to
          // nobody
          EXPECT_LE(moves, held ? 1u : 0u) << count << " at " << rate;
          EXPECT_LT(took_s, 200 + 2 * (count + 1) / rate + 2.5 * count) << count << " at " << rate;
        }
      }
    }
  }
}

TEST_F(SourceRatesTest, ASourceThatIsFarSlowerThanTheServiceIsLeft) {
  Come("slow", 10);
  Come("b", 10);
  choice_.Holds("slow", "f");
  links_["slow"] = 0.005;  // what others get from it
  Fetch({"b"});
  const double took_s = Run(1000);
  EXPECT_TRUE(AllDone());
  EXPECT_LT(took_s, 100 + 40);
  EXPECT_EQ(hosts_["b"].sources, (std::vector<std::string>{"slow", kServiceSource}));
}

TEST_F(SourceRatesTest, ASourceThatIsSomewhatSlowerIsKept) {
  Come("slower", 10);
  Come("b", 10);
  choice_.Holds("slower", "f");
  links_["slower"] = 4;
  fingerprint_ = "g";
  Fetch({"b"});  // which measures the service
  Run(1000);
  fingerprint_ = "f";
  Fetch({"b"});
  Run(1000);
  EXPECT_EQ(hosts_["b"].sources, (std::vector<std::string>{"slower"}));
}

TEST_F(SourceRatesTest, ALittleIsFetchedFromWherever) {
  total_ = 20;
  Come("slow", 10);
  Come("b", 10);
  choice_.Holds("slow", "f");
  links_["slow"] = 0.8;
  Fetch({"b"});
  EXPECT_LT(Run(1000), 30);
  EXPECT_EQ(hosts_["b"].sources, (std::vector<std::string>{"slow"}));
}

TEST_F(SourceRatesTest, AFewChunksThatDripAreLeftToo) {
  for (const int64_t few : {1, 2, 5}) {
    choice_ = {};
    total_ = few;
    for (const char* name : {"slow", "b"}) Come(name, 10);
    choice_.Holds("slow", "f");
    links_["slow"] = 0.0001;
    Fetch({"b"});
    EXPECT_LT(Run(1000), 60) << few;
  }
}

// The liar fetches from the service itself, or says so, and never gets on. Nothing was measured.
TEST_F(SourceRatesTest, ALiarThatSaysThatItHasLittleItselfIsLeft) {
  for (const double progress : {0.0, 0.05}) {
    choice_ = {};
    hosts_.clear();
    Come("liar", progress);
    Fetch({"liar"});
    for (int i = 0; i < 5; ++i) Step();
    Come("b", 10);
    Fetch({"liar", "b"});
    while (!hosts_["b"].done && now_ < 600 * kSecondMicros) Step();
    EXPECT_TRUE(hosts_["b"].done) << progress;
    now_ = kSecondMicros;
  }
}

TEST_F(SourceRatesTest, OneMovesToTheServiceAtATimeAndNoneIfItIsNoFaster) {
  links_[kServiceSource] = 1000;
  Come("h", 1000);
  Fetch({"h"});  // measures the service
  Run(100);
  fingerprint_ = "g";
  links_[kServiceSource] = 5;  // it has become slow for everybody
  std::vector<std::string> names;
  for (const char* name : {"h", "i", "j", "k", "l"}) names.emplace_back(name);
  for (const std::string& name : names) Come(name, 5);
  hosts_.clear();
  Fetch(names);
  Run(3000);
  size_t moves = 0;
  for (const auto& [name, host] : hosts_) moves += host.sources.size() - 1;
  EXPECT_LE(moves, 1u);
}

TEST_F(SourceRatesTest, WhileTheServiceHasNoPlaceAnIdleHostIsTaken) {
  choice_.Join("x", "other", false);
  for (const char* name : {"p", "q", "r", "s"}) {
    choice_.Join(name, "other", false);
    EXPECT_EQ(choice_.Choose({name, "x", 0, 1 << 30, "", "", SourceFault::kNone}, now_),
              kServiceSource);
  }
  for (const char* name : {"a", "b", "z"}) Come(name, 10);
  choice_.Holds("a", "f");
  links_["a"] = 0.01;
  Fetch({"b"});
  for (int i = 0; i < 10; ++i) Step();
  EXPECT_EQ(hosts_["b"].source, "a");
  choice_.Holds("z", "f");
  links_["z"] = 10;
  while (!AllDone() && now_ < 300 * kSecondMicros) {
    Step();
    for (const char* name : {"p", "q", "r", "s"})
      choice_.Choose({name, "x", 0, 1 << 30, kServiceSource, "", SourceFault::kNone}, now_);
  }
  EXPECT_EQ(hosts_["b"].sources, (std::vector<std::string>{"a", "z"}));
}

// ---- with addresses

TEST(CheckpointSources, AnAgentGetsTheAddressAndTheTokenOfItsSource) {
  CheckpointSources sources;
  for (const char* instance : {"one", "two", "three"}) sources.Begin(instance, "token");
  sources.Offers("one", "n1", {PeerUrl("10.0.0.7", 4000), "PEM", "secret"});
  sources.Holds("one", {"f00d"});
  const CheckpointSource source = sources.Choose("two", "f00d", {0, 10, "", "", {}});
  EXPECT_EQ(source.from, CheckpointSource::From::kAgent);
  EXPECT_EQ(source.url, "https://10.0.0.7:4000");
  EXPECT_EQ(source.authority, "PEM");
  const std::string asker = AskerOf(source.token);
  EXPECT_EQ(source.token, PeerToken("secret", "f00d", asker));
  EXPECT_NE(source.token, PeerToken("secret", "beef", asker));
  EXPECT_NE(source.token, PeerToken("secret", "f00d", "another"));
  EXPECT_EQ(source.token.find("two"), std::string::npos) << "an instance is a secret";
  EXPECT_EQ(sources.Choose("two", "f00d", {0, 10, source.url, "", {}}).token, source.token);
  EXPECT_NE(AskerOf(sources.Choose("three", "f00d", {0, 10, "", "", {}}).token), asker)
      << "each asker's calls can be counted";
  const CheckpointSource next =
      sources.Choose("two", "f00d", {3, 10, "", source.url, SourceFault::kWrong});
  EXPECT_NE(next.url, source.url);
  sources.End("one");
  EXPECT_NE(sources.Choose("three", "f00d", {3, 10, source.url, "", {}}).url, source.url);
}

TEST(CheckpointSources, AgentsOfLaunchedJobsFetchFromEachOther) {
  CheckpointSources sources;
  sources.Begin("one", "job:slurm-1");
  sources.Begin("two", "job:slurm-2");
  sources.Begin("three", "a person's");
  sources.Offers("one", "n1", {"https://a:1", "PEM", "secret"});
  sources.Holds("one", {"f00d"});
  EXPECT_EQ(sources.Choose("two", "f00d", {0, 10, "", "", {}}).url, "https://a:1");
  EXPECT_EQ(sources.Choose("three", "f00d", {0, 10, "", "", {}}).url, "");
}

class AddressesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* instance : {"first", "second", "me"}) sources_.Begin(instance, "token");
    Offer("first", "honest");
    sources_.Holds("first", {"f00d"});
  }
  void Offer(const std::string& instance, const std::string& host) {
    sources_.Offers(instance, host, {"https://a:1", "PEM", "secret of " + instance});
  }
  // The secret's owner, of the token that an agent gets.
  std::string Source() {
    const std::string token = sources_.Choose("me", "f00d", {0, 10, "", "", {}}).token;
    for (const char* of : {"first", "second"}) {
      if (token == PeerToken(std::string("secret of ") + of, "f00d", AskerOf(token))) return of;
    }
    return "";
  }
  CheckpointSources sources_;
};

TEST_F(AddressesTest, NobodyTakesTheAddressOfAConnectedAgent) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) Offer("second", "newcomer");
  const std::string log =
      testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  EXPECT_EQ(LinesWith(log, "'newcomer'"), 1) << log;
  EXPECT_EQ(LinesWith(log, "'honest'"), 1) << log;
  EXPECT_EQ(Source(), "first");
  sources_.Holds("second", {"f00d"});
  EXPECT_EQ(Source(), "first");
}

TEST_F(AddressesTest, TheAddressOfAnAgentThatIsAwayIsFree) {
  sources_.SetConnected("first", false);
  Offer("second", "newcomer");
  sources_.Holds("second", {"f00d"});
  EXPECT_EQ(Source(), "second");
  sources_.SetConnected("first", true);
  Offer("first", "honest");
  EXPECT_EQ(Source(), "second") << "now it is the other's";
}

TEST_F(AddressesTest, ANewcomerHasTheAddressAtItsNextHelloAndKeepsWhatItHolds) {
  Offer("second", "newcomer");
  sources_.Holds("second", {"f00d"});
  sources_.End("first");
  EXPECT_EQ(Source(), "");
  Offer("second", "newcomer");
  EXPECT_EQ(Source(), "second");
  Offer("second", "newcomer");
  EXPECT_EQ(Source(), "second") << "each hello offers it again";
}

TEST_F(AddressesTest, AnotherTokensAgentsAreNotConcerned) {
  sources_.Begin("other", "another token");
  Offer("other", "stranger");
  EXPECT_EQ(Source(), "first");
}

// ---- accusations in the log

TEST(CheckpointSources, AnAccusationIsOneLineThatNamesBoth) {
  CheckpointSources sources;
  for (const char* instance : {"one", "two", "three"}) sources.Begin(instance, "token");
  sources.Offers("one", "n1", {"https://a:1", "PEM", "secret"});
  sources.Offers("two", "n2", {"", "", ""});
  sources.Offers("three", "n3", {"", "", ""});
  sources.Holds("one", {"f00d"});
  const auto log_of = [](const auto& work) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  };
  const auto accuse = [&](const char* by, const std::string& url) {
    sources.Choose(by, "f00d", {3, 10, "", url, SourceFault::kWrong});
  };
  const std::string unsent = log_of([&] {
    accuse("two", "https://a:1");  // its first question: it was sent nowhere before
    for (int i = 0; i < 1500; ++i)
      accuse("two", "https://" + std::to_string(i) + std::string(4000, 'x') + "\n");
  });
  EXPECT_EQ(LinesWith(unsent, "n2"), 1) << unsent.substr(0, 1000);
  EXPECT_LT(unsent.size(), 500u);
  sources.Done("two", "f00d");
  EXPECT_EQ(sources.Choose("three", "f00d", {3, 10, "", "", {}}).url, "https://a:1");
  const std::string sent = log_of([&] {
    for (int i = 0; i < 1500; ++i) accuse("three", "https://a:1");
  });
  EXPECT_EQ(LinesWith(sent, "f00d"), 1) << sent;
  EXPECT_EQ(LinesWith(sent, "'n3'"), 1) << sent;
  EXPECT_EQ(LinesWith(sent, "'n1'"), 1) << sent;
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

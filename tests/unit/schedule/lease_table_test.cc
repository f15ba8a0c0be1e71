#include "orchestrator/schedule/lease_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/unit/schedule/holders.h"

namespace evald {
namespace {

TEST(LeaseTable, LeasesByRankThenByOrder) {
  LeaseTable table({});
  table.Add(1, 5);
  table.Add(2, 0);
  table.Add(3, 5);
  EXPECT_EQ(table.Lease("w"_p, 0)->item, 2);
  EXPECT_EQ(table.Lease("w"_p, 0)->item, 1);
  EXPECT_EQ(table.Lease("w"_p, 0)->item, 3);
  EXPECT_FALSE(table.Lease("w"_p, 0));
}

TEST(LeaseTable, ALateAttemptChangesNothing) {
  LeaseTable table({});
  table.Add(7, 0);
  const Grant first = *table.Lease("a"_p, 0);
  ASSERT_EQ(table.Lose("a"_p, "killed").size(), 1u);
  const Grant second = *table.Lease("b"_p, 1);
  EXPECT_EQ(second.attempt, first.attempt + 1);
  EXPECT_FALSE(table.Complete("a"_p, 7, first.attempt));
  EXPECT_FALSE(table.Fail("a"_p, 7, first.attempt, "late", false));
  EXPECT_TRUE(table.Holds(7, second.attempt));
  EXPECT_TRUE(table.Complete("b"_p, 7, second.attempt));
  EXPECT_FALSE(table.Complete("b"_p, 7, second.attempt));
  EXPECT_EQ(table.completed(), 1u);
  EXPECT_TRUE(table.idle());
}

TEST(LeaseTable, AReportOfWhoDoesNotHoldTheLeaseChangesNothing) {
  LeaseTable table({});
  table.Add(7, 0);
  const Grant grant = *table.Lease("a"_p, 5);
  EXPECT_FALSE(table.Holds("b"_p, 7, grant.attempt));
  EXPECT_FALSE(table.Complete("b"_p, 7, grant.attempt));
  EXPECT_FALSE(table.Fail("b"_p, 7, grant.attempt, "made up", false));
  EXPECT_FALSE(table.GiveBack("b"_p, 7, grant.attempt));
  EXPECT_FALSE(table.LeasedAt("b"_p, 7));
  EXPECT_TRUE(table.given_up().empty());
  EXPECT_EQ(table.LeasedAt("a"_p, 7), 5);
  EXPECT_TRUE(table.Complete("a"_p, 7, grant.attempt));
}

TEST(LeaseTable, WhatIsGivenBackHasNotFailed) {
  LeaseTable table({.attempts_max = 1});
  table.Add(7, 0);
  table.Add(8, 0);
  const Grant grant = *table.Lease("a"_p, 0);
  EXPECT_TRUE(table.GiveBack("a"_p, 7, grant.attempt));
  EXPECT_FALSE(table.Complete("a"_p, 7, grant.attempt));
  EXPECT_EQ(table.Lease("b"_p, 1)->item, 7) << "at the front of its rank";
  EXPECT_TRUE(table.given_up().empty());
}

TEST(LeaseTable, GivesUpAfterTheLastAttemptAndSaysWhy) {
  LeaseTable table({.attempts_max = 2});
  table.Add(1, 0);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const Grant grant = *table.Lease("w"_p, attempt);
    EXPECT_EQ(grant.attempt, attempt);
    EXPECT_TRUE(table.Fail("w"_p, 1, attempt, "out of memory", true));
  }
  EXPECT_FALSE(table.Lease("w"_p, 3));
  ASSERT_EQ(table.given_up().size(), 1u);
  EXPECT_EQ(table.given_up()[0].attempts, 2);
  EXPECT_EQ(table.given_up()[0].cause, "out of memory");
}

TEST(LeaseTable, AFailureThatWouldRepeatIsNotRetried) {
  LeaseTable table({.attempts_max = 9});
  table.Add(1, 0);
  const Grant grant = *table.Lease("w"_p, 0);
  EXPECT_TRUE(table.Fail("w"_p, 1, grant.attempt, "bad input", false));
  EXPECT_EQ(table.given_up().size(), 1u);
}

TEST(LeaseTable, OfALostHoldersLeasesOnlyTheOldestHasFailed) {
  LeaseTable table({.attempts_max = 2});
  for (int item = 1; item <= 3; ++item) table.Add(item, 0);
  for (int death = 0; death < 2; ++death) {
    for (int item = 1; item <= 3; ++item) EXPECT_EQ(table.Lease("w"_p, 0)->item, item);
    EXPECT_EQ(table.Lose("w"_p, "killed").size(), 3u);
  }
  ASSERT_EQ(table.given_up().size(), 1u);
  EXPECT_EQ(table.given_up()[0].item, 1);
  EXPECT_EQ(table.queued(), 2u);
  EXPECT_EQ(table.Lease("w"_p, 0)->attempt, 3) << "attempt numbers grow all the same";
}

// A device that fails three times must not cost a trial that other devices could do.
TEST(LeaseTable, WhatIsLostWithTheSameFaultyHolderFailsOnce) {
  LeaseTable table({.attempts_max = 3});
  table.Add(1, 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(table.Lease("gpu"_p, 0)) << i;
    table.Lose("gpu"_p, "a kernel failed", Suspect::kHolder);
  }
  for (const Holder holder : {"other"_p, "third"_p}) {
    ASSERT_TRUE(table.Lease(holder, 0)) << NameOf(holder);
    EXPECT_TRUE(table.given_up().empty());
    table.Lose(holder, "a kernel failed", Suspect::kHolder);
  }
  ASSERT_EQ(table.given_up().size(), 1u) << "it fails wherever it goes";
}

// A device that is set aside for its failures ends this sooner. A device that finishes other trials
// in between, of any run, is never set aside. Then the trial is what fails.
TEST(LeaseTable, WhatIsLostWithItsOnlyHolderAgainAndAgainIsGivenUp) {
  LeaseTable table({.attempts_max = 3, .same_holder_max = 3});
  table.Add(1, 0);
  int losses = 0;
  while (table.Lease("gpu"_p, 0)) {
    ASSERT_LT(losses, 100) << "it is tried without end";
    table.Lose("gpu"_p, "a kernel failed", Suspect::kHolder);
    ++losses;
    const int64_t other = 100 + losses;
    table.Add(other, other);
    ASSERT_TRUE(table.Lease("gpu"_p, 0, [&](int64_t item) { return item == other; }));
    ASSERT_TRUE(table.Complete("gpu"_p, other, 1));
  }
  EXPECT_EQ(losses, 5) << "three count as one, and two more are failures";
  ASSERT_EQ(table.given_up().size(), 1u);
  EXPECT_EQ(table.given_up()[0].cause, "a kernel failed");
}

TEST(LeaseTable, AnotherHolderBeginsTheCountAnew) {
  LeaseTable table({.attempts_max = 3, .same_holder_max = 2});
  table.Add(1, 0);
  for (const Holder holder : {"gpu"_p, "gpu"_p, "other"_p, "other"_p}) {
    ASSERT_TRUE(table.Lease(holder, 0));
    table.Lose(holder, "a kernel failed", Suspect::kHolder);
    EXPECT_TRUE(table.given_up().empty());
  }
  ASSERT_TRUE(table.Lease("other"_p, 0));
  table.Lose("other"_p, "a kernel failed", Suspect::kHolder);
  EXPECT_EQ(table.given_up().size(), 1u);
}

// Hosts may be taken away at any time; a trial that brings hosts down must not bring all of them
// down.
TEST(LeaseTable, WhatIsLostWithItsHostFailsOnlyAfterManyLosses) {
  LeaseTable table({.attempts_max = 3, .host_losses_max = 5});
  table.Add(1, 0);
  int losses = 0;
  while (table.Lease("w"_p, 0)) {
    ASSERT_LT(losses, 100) << "it is tried without end";
    table.Lose("w"_p, "lost with its agent", Suspect::kHost);
    ++losses;
  }
  EXPECT_EQ(losses, 13) << "ten losses, and three failures";
  EXPECT_EQ(table.given_up().at(0).attempts, 13);
}

TEST(LeaseTable, WhatMayNotFailOnceIsNotTriedAgainOnAnotherHost) {
  LeaseTable table({.attempts_max = 1});
  table.Add(1, 0);
  ASSERT_TRUE(table.Lease("w"_p, 0));
  table.Lose("w"_p, "lost with its agent", Suspect::kHost);
  EXPECT_EQ(table.given_up().size(), 1u);
}

TEST(LeaseTable, OnlyHoldersThatHoldSomethingAreSilent) {
  LeaseTable table({.attempts_max = 3, .silence_max_us = 100});
  table.Add(1, 0);
  table.Lease("busy"_p, 0);
  table.Heard("idle"_p, 0);
  EXPECT_TRUE(table.Silent(100).empty());
  ASSERT_EQ(table.Silent(101), std::vector<Holder>{"busy"_p});
  table.Heard("busy"_p, 101);
  EXPECT_TRUE(table.Silent(201).empty());
}

TEST(LeaseTable, AnItemLeasedAtOnceIsLikeAnyOther) {
  LeaseTable table({});
  table.Add(1, 1);
  const Grant grant = table.AddLeased(2, 2, "w"_p, 5);
  EXPECT_EQ(grant.attempt, 1);
  EXPECT_EQ(table.queued(), 1u);
  EXPECT_EQ(table.LeasedAt("w"_p, 2), 5);
  EXPECT_TRUE(table.GiveBack("w"_p, 2, 1));
  EXPECT_EQ(table.Lease("w"_p, 6)->item, 1) << "lower ranks go first";
  EXPECT_EQ(table.Lease("w"_p, 6)->attempt, 2);
  ASSERT_EQ(table.ItemsOf("w"_p).size(), 2u);
  EXPECT_EQ(table.ItemsOf("w"_p)[0], 1);
  EXPECT_EQ(table.HeldBy("w"_p)[1].item, 2);
  EXPECT_TRUE(table.ItemsOf(NumberOf("nobody")).empty());
}

// Random events in any order, with duplicates and late ones. Each item ends exactly once.
TEST(LeaseTable, EveryInterleavingEndsEachItemExactlyOnce) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    SCOPED_TRACE(seed);
    LeaseTable table({.attempts_max = 4});
    constexpr int kItems = 20;
    for (int i = 0; i < kItems; ++i) table.Add(i, i % 3);
    std::vector<std::pair<Holder, Grant>> granted;
    std::set<int64_t> completed;
    for (int64_t now = 0; !table.idle(); ++now) {
      ASSERT_LT(now, 100000);
      const Holder holder = static_cast<Holder>(random() % 4);
      switch (random() % 4) {
        case 0:
        case 1:
          if (const auto grant = table.Lease(holder, now)) granted.emplace_back(holder, *grant);
          break;
        case 2:
          if (random() % 5 == 0) table.Lose(holder, "killed");
          break;
        default:
          if (granted.empty()) break;
          const auto [of, grant] = granted[random() % granted.size()];  // live, late or repeated
          if (random() % 3 == 0) {
            table.Fail(of, grant.item, grant.attempt, "failed", true);
          } else if (table.Complete(of, grant.item, grant.attempt)) {
            ASSERT_TRUE(completed.insert(grant.item).second);
          }
      }
    }
    std::set<int64_t> ended = completed;
    for (const GivenUp& given_up : table.given_up())
      ASSERT_TRUE(ended.insert(given_up.item).second);
    EXPECT_EQ(ended.size(), static_cast<size_t>(kItems));
    std::set<std::pair<int64_t, int>> attempts;
    for (const auto& [of, grant] : granted) {
      EXPECT_TRUE(attempts.insert({grant.item, grant.attempt}).second)
          << "an attempt is granted once";
    }
  }
}

}  // namespace
}  // namespace evald

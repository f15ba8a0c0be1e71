#include "orchestrator/schedule/scoring_turns.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

constexpr int64_t kSecond = 1'000'000;

DispatchRun Of(int64_t number, const std::string& user, int priority = 0) {
  return {number, priority, user};
}

TEST(ScoringTurns, NothingToChooseFrom) { EXPECT_FALSE(ScoringTurns().Choose({}, 0)); }

TEST(ScoringTurns, HigherPriorityGoesFirstWhateverItHasHad) {
  ScoringTurns turns;
  turns.Begin("m0", Of(2, "b", 5), 0);
  turns.End("m0", 100 * kSecond);
  EXPECT_EQ(turns.Choose({Of(1, "a"), Of(2, "b", 5)}, 100 * kSecond), 2);
}

TEST(ScoringTurns, AnotherUsersJobsGoBetweenThoseOfAnOlderRun) {
  ScoringTurns turns;
  const std::vector<DispatchRun> both = {Of(1, "mal"), Of(2, "bob")};
  EXPECT_EQ(turns.Choose(both, 0), 1) << "the older where nobody has had anything";
  turns.Begin("m0", both[0], 0);
  EXPECT_EQ(turns.Choose(both, 8 * kSecond), 2) << "a job that is under way counts";
  turns.End("m0", 24 * kSecond);
  int64_t now = 24 * kSecond;
  for (int job = 0; job < 20; ++job, now += kSecond) {
    ASSERT_EQ(turns.Choose(both, now), 2) << "short jobs go on until they took as long";
    turns.Begin("m0", both[1], now);
    turns.End("m0", now + kSecond);
  }
}

TEST(ScoringTurns, RunsOfOneUserGoInTurn) {
  ScoringTurns turns;
  const std::vector<DispatchRun> runs = {Of(1, ""), Of(2, ""), Of(3, "")};
  std::vector<int64_t> order;
  for (int64_t now = 0; now < 6 * kSecond; now += kSecond) {
    order.push_back(*turns.Choose(runs, now));
    turns.Begin("m0", runs[static_cast<size_t>(order.back() - 1)], now);
  }
  EXPECT_EQ(order, (std::vector<int64_t>{1, 2, 3, 1, 2, 3}));
  turns.Forget(3);
  EXPECT_EQ(turns.Choose({runs[0], runs[1]}, 6 * kSecond), 1);
}

// Users with endless work on several processes: nobody gets ahead by more than a job for each
// process.
TEST(ScoringTurns, NobodyStarves) {
  ScoringTurns turns;
  const std::vector<DispatchRun> runs = {Of(1, "a"), Of(2, "b"), Of(3, "c")};
  const std::map<int64_t, int64_t> job_s = {{1, 30}, {2, 3}, {3, 1}};
  constexpr int kProcesses = 3;
  std::map<int64_t, double> had;
  std::vector<std::pair<int64_t, int64_t>> at(kProcesses, {0, 0});  // end of the job, and its run
  for (int64_t now = 0; now < 600; ++now) {
    for (int p = 0; p < kProcesses; ++p) {
      auto& [until, run] = at[static_cast<size_t>(p)];
      if (until > now) continue;
      const std::string process = "m" + std::to_string(p);
      turns.End(process, now * kSecond);
      run = *turns.Choose(runs, now * kSecond);
      until = now + job_s.at(run);
      turns.Begin(process, runs[static_cast<size_t>(run - 1)], now * kSecond);
    }
    for (const auto& [until, run] : at) had[run] += 1;
  }
  EXPECT_NEAR(had[1], 600, 100);
  EXPECT_NEAR(had[2], 600, 100);
  EXPECT_NEAR(had[3], 600, 100);
}

}  // namespace
}  // namespace evald

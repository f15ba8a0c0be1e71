#include "orchestrator/schedule/dispatch.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(ChooseRun, NothingToChooseFrom) { EXPECT_FALSE(ChooseRun({}, {}, 0)); }

TEST(ChooseRun, HigherPriorityTakesTheDevice) {
  EXPECT_EQ(ChooseRun({{1, 0, "a"}, {2, 5, "b"}, {3, -1, "c"}}, {{"b", 1e6}}, 1), 2);
}

TEST(ChooseRun, OneUsersRunsGoInOrderOfAgeButTheDeviceStaysWhereItIs) {
  EXPECT_EQ(ChooseRun({{4, 0, "a"}, {2, 0, "a"}}, {}, 0), 2);
  EXPECT_EQ(ChooseRun({{4, 0, "a"}, {2, 0, "a"}}, {}, 4), 4);
}

TEST(ChooseRun, WhoHasHadLessComesFirst) {
  EXPECT_EQ(ChooseRun({{1, 0, "a"}, {2, 0, "b"}}, {{"a", 10.0}}, 0), 2);
}

TEST(ChooseRun, ADeviceChangesUsersOnlyForMoreThanAQuantum) {
  const std::vector<DispatchRun> runs = {{1, 0, "a"}, {2, 0, "b"}};
  EXPECT_EQ(ChooseRun(runs, {{"a", kDispatchQuantumSeconds - 1}}, 1), 1);
  EXPECT_EQ(ChooseRun(runs, {{"a", kDispatchQuantumSeconds + 1}}, 1), 2);
}

// Two users with endless work: neither is ever ahead of the other by more than a quantum and a
// trial.
TEST(ChooseRun, NobodyStarves) {
  const std::vector<DispatchRun> runs = {{1, 0, "a"}, {2, 0, "b"}, {3, 0, "c"}};
  const std::map<int64_t, std::string> user = {{1, "a"}, {2, "b"}, {3, "c"}};
  constexpr double kTrialSeconds = 7;
  DeviceUse use;
  int64_t current = 0;
  for (int i = 0; i < 1000; ++i) {
    current = *ChooseRun(runs, use, current);
    use[user.at(current)] += kTrialSeconds;
    double least = 1e9, most = 0;
    for (const auto& [run, name] : user) {
      least = std::min(least, use[name]);
      most = std::max(most, use[name]);
    }
    ASSERT_LE(most - least, kDispatchQuantumSeconds + kTrialSeconds);
  }
}

}  // namespace
}  // namespace evald

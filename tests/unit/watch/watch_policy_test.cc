#include "orchestrator/watch/watch_policy.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

std::vector<FoundCheckpoint> Found(const std::vector<std::string>& names) {
  std::vector<FoundCheckpoint> found;
  for (const std::string& name : names) found.push_back({"/c/" + name, name, "i"});
  return found;
}

std::vector<std::string> Names(const std::vector<FoundCheckpoint>& checkpoints) {
  std::vector<std::string> names;
  for (const FoundCheckpoint& checkpoint : checkpoints) names.push_back(checkpoint.name);
  return names;
}

using List = std::vector<std::string>;

TEST(WatchPolicy, AllInOrderAndEachOnce) {
  WatchMemory memory;
  memory.decided.insert("b i");
  EXPECT_EQ(Names(DecideWatch(WatchWhich::kAll, 1, Found({"a", "b", "c"}), memory, 5).submit),
            (List{"a", "c"}));
}

TEST(WatchPolicy, AnotherContentUnderTheSameNameIsAnotherCheckpoint) {
  WatchMemory memory;
  memory.decided.insert("a before");
  EXPECT_EQ(Names(DecideWatch(WatchWhich::kAll, 1, Found({"a"}), memory, 0).submit), (List{"a"}));
}

TEST(WatchPolicy, TheNewestWhenNothingWaits) {
  const WatchDecision waits = DecideWatch(WatchWhich::kNewest, 1, Found({"a", "b", "c"}), {}, 1);
  EXPECT_TRUE(waits.submit.empty());
  EXPECT_TRUE(waits.pass_over.empty()) << "a newer one may come";
  const WatchDecision idle = DecideWatch(WatchWhich::kNewest, 1, Found({"a", "b", "c"}), {}, 0);
  EXPECT_EQ(Names(idle.submit), (List{"c"}));
  EXPECT_EQ(Names(idle.pass_over), (List{"a", "b"}));
}

TEST(WatchPolicy, EveryNthOverSeveralLooks) {
  WatchMemory memory;
  WatchDecision decision = DecideWatch(WatchWhich::kEvery, 3, Found({"a", "b"}), memory, 0);
  EXPECT_TRUE(decision.submit.empty());
  for (const FoundCheckpoint& c : decision.pass_over) memory.decided.insert(MemoryKey(c));
  memory.arrived = 2;
  decision = DecideWatch(WatchWhich::kEvery, 3, Found({"a", "b", "c", "d", "e", "f"}), memory, 0);
  EXPECT_EQ(Names(decision.submit), (List{"c", "f"}));
  EXPECT_EQ(Names(decision.pass_over), (List{"d", "e"}));
}

TEST(StepOf, TheLastNumberInTheName) {
  EXPECT_EQ(StepOf("step-00100"), 100);
  EXPECT_EQ(StepOf("run2-checkpoint-1500-hf"), 1500);
  EXPECT_EQ(StepOf("final"), -1);
  EXPECT_EQ(StepOf("99999999999999999999999"), INT64_MAX);
}

}  // namespace
}  // namespace evald

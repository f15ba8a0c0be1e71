#include "orchestrator/fleet_machine/index_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace evald {
namespace {

void ExpectSame(const IndexSet& set, const std::set<size_t>& reference) {
  ASSERT_EQ(set.size(), reference.size());
  EXPECT_EQ(set.empty(), reference.empty());
  for (size_t index = 0; index < 300; ++index) {
    EXPECT_EQ(set.has(index), reference.count(index) > 0) << index;
    const auto next = reference.lower_bound(index);
    EXPECT_EQ(set.NextFrom(index), next == reference.end() ? std::nullopt : std::optional(*next))
        << index;
  }
}

TEST(IndexSet, BehavesLikeAStdSet) {
  std::mt19937_64 random(1);
  IndexSet set;
  std::set<size_t> reference;
  for (int step = 0; step < 2000; ++step) {
    const size_t index = random() % 260;
    if (random() % 2 == 0) {
      set.Insert(index);
      reference.insert(index);
    } else {
      set.Erase(index);
      reference.erase(index);
    }
    if (step % 50 == 0) ExpectSame(set, reference);
  }
  set.Clear();
  ExpectSame(set, {});
}

TEST(IndexSet, InsertAllIsTheUnion) {
  IndexSet few, many;
  for (const size_t index : {0u, 63u, 64u}) few.Insert(index);
  for (const size_t index : {63u, 200u}) many.Insert(index);
  few.InsertAll(many);
  ExpectSame(few, {0, 63, 64, 200});
  many.InsertAll(IndexSet());
  ExpectSame(many, {63, 200});
}

}  // namespace
}  // namespace evald

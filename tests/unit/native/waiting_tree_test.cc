// The order in which sequences leave the tree.
#include "worker/native/waiting_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "worker/native/scheduler.h"

namespace evald::native {
namespace {

using Tokens = std::vector<int32_t>;

class WaitingTreeTest : public testing::Test {
 protected:
  void Add(const Tokens& tokens, int64_t longer = 0) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = ++ids_;
    sequence->tokens = tokens;
    sequence->positions_max = static_cast<int64_t>(tokens.size()) + longer;
    tree_.Add(std::move(sequence));
  }
  Tokens Take() {
    Sequence* next = tree_.Next();
    if (next == nullptr) return {};
    tree_.Follow(*next);
    return tree_.Take(next)->tokens;
  }

  WaitingTree tree_{1000};
  uint64_t ids_ = 0;
};

TEST_F(WaitingTreeTest, ByPrefixThenTheLongest) {
  Add({1, 2, 3});
  Add({9, 9, 9, 9});
  Add({1, 2, 4, 5, 6});
  Add({9, 9, 1}, 4);
  Add({1, 2});
  EXPECT_EQ(Take(), (Tokens{9, 9, 1})) << "the longest of all, with what it may generate";
  EXPECT_EQ(Take(), (Tokens{9, 9, 9, 9})) << "then what shares its prefix";
  EXPECT_EQ(Take(), (Tokens{1, 2, 4, 5, 6}));
  Add({7, 7, 7, 7, 7, 7, 7, 7});
  EXPECT_EQ(Take(), (Tokens{1, 2, 3})) << "a prefix is used to its end";
  EXPECT_EQ(Take(), (Tokens{1, 2}));
  EXPECT_EQ(Take(), (Tokens{7, 7, 7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(Take(), Tokens{});
}

TEST_F(WaitingTreeTest, EqualOnesComeInOrderAndAllComeOut) {
  std::mt19937 random(3);
  std::vector<Tokens> added;
  for (int i = 0; i < 500; ++i) {
    Tokens tokens(1 + random() % 6);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 3);
    Add(tokens);
    added.push_back(tokens);
  }
  std::vector<Tokens> taken;
  while (tree_.size() > 0) taken.push_back(Take());
  std::sort(added.begin(), added.end());
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, added);
}

TEST_F(WaitingTreeTest, EveryPrefixIsVisitedOnce) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    Add({static_cast<int32_t>(i % 5), static_cast<int32_t>(random() % 4),
         static_cast<int32_t>(random() % 9), static_cast<int32_t>(random() % 9)},
        static_cast<int64_t>(random() % 50));
  }
  // The sequences of a prefix leave one after another.
  std::vector<Tokens> firsts;
  while (tree_.size() > 0) {
    const Tokens taken = Take();
    const Tokens prefix(taken.begin(), taken.begin() + 2);
    if (firsts.empty() || firsts.back() != prefix) firsts.push_back(prefix);
  }
  EXPECT_EQ(firsts.size(), 20u);
}

TEST_F(WaitingTreeTest, NoneWaitsForEver) {
  WaitingTree impatient(10);
  const auto add = [&](Tokens tokens) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = ++ids_;
    sequence->positions_max = static_cast<int64_t>(tokens.size());
    sequence->tokens = std::move(tokens);
    impatient.Add(std::move(sequence));
  };
  add({5});
  int before = 0;
  for (int i = 0;; ++i) {
    add({1, i});
    add({1, i, 2});
    if (impatient.Take(impatient.Next())->tokens == Tokens{5}) break;
    ASSERT_LE(++before, 20);
  }
  EXPECT_GE(before, 10);
}

TEST_F(WaitingTreeTest, ForgetsAll) {
  Add({1, 2});
  Add({1});
  tree_.Clear();
  EXPECT_EQ(tree_.Next(), nullptr);
  EXPECT_EQ(tree_.size(), 0u);
  Add({3});
  EXPECT_EQ(Take(), Tokens{3});
}

}  // namespace
}  // namespace evald::native

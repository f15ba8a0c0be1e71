#include "worker/native/prefix_tree.h"

#include <gtest/gtest.h>

#include <numeric>

namespace evald::native {
namespace {

// The tree only holds pages and releases them.
PageRef SomePage() {
  return PageRef(reinterpret_cast<Page*>(new char),
                 [](Page* p) { delete reinterpret_cast<char*>(p); });
}

using Path = std::vector<PrefixTree::Node*>;

std::vector<int32_t> Count(int from, int count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

std::vector<int32_t> operator+(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PrefixTreeTest : public testing::Test {
 protected:
  // Acts as if a sequence had computed these tokens.
  Path Computed(const std::vector<int32_t>& tokens) {
    const Path path = tree_.Hold(tokens);
    for (PrefixTree::Node* node : path) {
      if (node->page == nullptr) node->page = SomePage();
      node->ready = static_cast<int>(node->tokens.size());
    }
    return path;
  }
  int64_t Found(const std::vector<int32_t>& tokens) {
    return tree_.Find(tokens, static_cast<int64_t>(tokens.size())).length;
  }

  PrefixTree tree_;
};

TEST_F(PrefixTreeTest, FindsWholePagesAndThePartOfOne) {
  const auto tokens = Count(0, 150);
  tree_.Release(Computed(tokens));
  const auto match = tree_.Find(tokens + Count(900, 10), 160);
  EXPECT_EQ(match.whole.size(), 2u);
  EXPECT_EQ(match.partial_length, 22);
  EXPECT_EQ(match.length, 150);
  EXPECT_EQ(Found(Count(0, 100) + Count(500, 20)), 100) << "within a page";
  EXPECT_EQ(tree_.Find(tokens, 149).length, 149) << "never beyond the limit";
  EXPECT_EQ(Found(Count(1, 70)), 0);
  EXPECT_EQ(tree_.Find(tokens, 0).length, 0);
}

TEST_F(PrefixTreeTest, TheBestOfManyNeighbours) {
  for (int i = 0; i < 50; ++i) tree_.Release(Computed(Count(0, 10 + i) + Count(2000 + 7 * i, 30)));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Found(Count(0, 10 + i) + Count(2000 + 7 * i, 20) + Count(5000, 9)), 30 + i);
  }
}

TEST_F(PrefixTreeTest, TellsWhatIsComing) {
  const Path path = tree_.Hold(Count(0, 100));
  path[0]->page = SomePage();
  path[0]->ready = 40;
  const auto match = tree_.Find(Count(0, 90), 90);
  EXPECT_EQ(match.length, 40);
  EXPECT_EQ(match.partial, path[0]);
  EXPECT_EQ(match.coming_length, 90);
  EXPECT_EQ(match.coming, path[1]);
  tree_.Release(path);
  EXPECT_EQ(tree_.size(), 0) << "what nobody computed to its end is dropped";
}

TEST_F(PrefixTreeTest, EvictsTheLeafThatWasUsedLongestAgo) {
  const auto shared = Count(0, 64);
  tree_.Release(Computed(shared + Count(100, 64)));
  tree_.Release(Computed(shared + Count(300, 64)));
  tree_.Release(Computed(shared + Count(100, 64)));  // used again
  ASSERT_TRUE(tree_.EvictOne());
  EXPECT_EQ(Found(shared + Count(300, 64)), 64);
  EXPECT_EQ(Found(shared + Count(100, 64)), 128);
  ASSERT_TRUE(tree_.EvictOne());
  EXPECT_EQ(Found(shared + Count(100, 64)), 64) << "a page goes only after what follows it";
  ASSERT_TRUE(tree_.EvictOne());
  EXPECT_FALSE(tree_.EvictOne());
  EXPECT_EQ(tree_.size(), 0);
}

TEST_F(PrefixTreeTest, WhatIsHeldStays) {
  const Path held = Computed(Count(0, 128));
  tree_.Release(Computed(Count(0, 128) + Count(700, 5)));
  EXPECT_TRUE(tree_.EvictOne());
  EXPECT_FALSE(tree_.EvictOne());
  EXPECT_EQ(Found(Count(0, 128)), 128);
  tree_.Release(held);
  EXPECT_TRUE(tree_.EvictOne());
}

}  // namespace
}  // namespace evald::native

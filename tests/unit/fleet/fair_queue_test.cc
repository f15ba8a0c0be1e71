#include "orchestrator/fleet/fair_queue.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

using Queue = FairQueue<int>;

int Take(Queue* queue, const std::string& user) {
  const auto next = queue->Next();
  if (!next) return -1;
  EXPECT_EQ(next->first, user);
  return next->second;
}

TEST(FairQueueTest, UsersTakeTurnsAndEachKeepsItsOrder) {
  Queue queue(100, 100);
  for (const int task : {1, 2, 3}) queue.Add("ada", task);
  queue.Add("bob", 11);
  queue.Add("eve", 21);
  queue.Add("eve", 22);
  std::vector<int> order;
  while (const auto next = queue.Next()) {
    order.push_back(next->second);
    queue.Done(next->first);
  }
  EXPECT_EQ(order, (std::vector<int>{1, 11, 21, 2, 22, 3}));
  EXPECT_EQ(queue.waiting(), 0u);
}

TEST(FairQueueTest, WhereThereAreNoUsersOneMayFillItAll) {
  Queue queue(3, 1);
  for (const int task : {1, 2, 3}) EXPECT_EQ(queue.Add("", task), Taken::kYes);
  EXPECT_EQ(queue.Add("", 4), Taken::kFull);
  EXPECT_EQ(queue.Add("ada", 5), Taken::kFull);
}

TEST(FairQueueTest, AUserHasOneTaskAtWork) {
  Queue queue(100, 100);
  for (const int task : {1, 2, 3}) queue.Add("ada", task);
  EXPECT_EQ(Take(&queue, "ada"), 1);
  EXPECT_FALSE(queue.Next());
  queue.Add("bob", 11);
  EXPECT_EQ(Take(&queue, "bob"), 11);
  EXPECT_FALSE(queue.Next());
  queue.Done("bob");
  EXPECT_FALSE(queue.Next());
  queue.Done("ada");
  EXPECT_EQ(Take(&queue, "ada"), 2);
}

TEST(FairQueueTest, WhoComesWhileItsTaskIsAtWorkGoesBehindThoseWhoWait) {
  Queue queue(100, 100);
  queue.Add("ada", 1);
  EXPECT_EQ(Take(&queue, "ada"), 1);
  queue.Add("ada", 2);
  queue.Add("bob", 11);
  queue.Done("ada");
  EXPECT_EQ(Take(&queue, "bob"), 11);
  EXPECT_EQ(Take(&queue, "ada"), 2);
}

TEST(FairQueueTest, BoundsWhatWaitsPerUserAndInAll) {
  Queue queue(5, 2);
  EXPECT_EQ(queue.Add("ada", 1), Taken::kYes);
  EXPECT_EQ(Take(&queue, "ada"), 1);  // an item in work does not wait
  EXPECT_EQ(queue.Add("ada", 2), Taken::kYes);
  EXPECT_EQ(queue.Add("ada", 3), Taken::kYes);
  EXPECT_EQ(queue.Add("ada", 4), Taken::kUserIsFull);
  EXPECT_EQ(queue.Add("bob", 11), Taken::kYes);
  EXPECT_EQ(queue.Add("eve", 21), Taken::kYes);
  EXPECT_EQ(queue.Add("eve", 22), Taken::kYes);
  EXPECT_EQ(queue.Add("joe", 31), Taken::kFull);
  EXPECT_EQ(Take(&queue, "bob"), 11);
  EXPECT_EQ(queue.Add("joe", 31), Taken::kYes);
  queue.Done("ada");
  EXPECT_EQ(queue.Add("ada", 4), Taken::kUserIsFull);
}

}  // namespace
}  // namespace evald

#include "orchestrator/service/run_queue.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

// The queue only asks whether there is one.
std::shared_ptr<Evaluation> SomeEvaluation() {
  static char here;
  return {std::shared_ptr<void>(), reinterpret_cast<Evaluation*>(&here)};
}

class RunQueueTest : public testing::Test {
 protected:
  QueuedRun* Add(const std::string& id, const std::string& user, int priority = 0) {
    QueuedRun run;
    run.number = ++number_;
    run.id = id;
    run.user = user;
    run.priority = priority;
    return queue_.Add(std::move(run));
  }
  void Start(const std::string& id) {
    queue_.Find(id)->evaluation = SomeEvaluation();
    queue_.Find(id)->state = "preparing";
  }
  std::string Next(int active_max) {
    const QueuedRun* next = queue_.Next(active_max);
    return next ? next->id : "none";
  }
  using Ids = std::vector<std::string>;

  RunQueue queue_;
  int64_t number_ = 0;
};

TEST_F(RunQueueTest, UsersTakeTurnsEachWithTheOldestFirst) {
  for (const char* id : {"ada1", "ada2", "ada3"}) Add(id, "ada");
  Add("bob1", "bob");
  Add("cy1", "cy");
  Add("bob2", "bob");
  EXPECT_EQ(queue_.Waiting(), (Ids{"ada1", "bob1", "cy1", "ada2", "bob2", "ada3"}));
}

TEST_F(RunQueueTest, AUserWhoHasRunsAtWorkWaitsForTheFirstOfOthers) {
  for (const char* id : {"ada1", "ada2", "ada3"}) Add(id, "ada");
  Start("ada1");
  Start("ada2");
  Add("bob1", "bob");
  EXPECT_EQ(queue_.Waiting(), (Ids{"bob1", "ada3"}));
  EXPECT_EQ(Next(2), "none");
  queue_.Remove(1);
  EXPECT_EQ(Next(2), "bob1");
}

TEST_F(RunQueueTest, PriorityGoesBeforeTurns) {
  Add("ada1", "ada", 5);
  Add("ada2", "ada", 5);
  Add("bob1", "bob");
  EXPECT_EQ(queue_.Waiting(), (Ids{"ada1", "ada2", "bob1"}));
  Add("bob2", "bob", 5);
  EXPECT_EQ(queue_.Waiting(), (Ids{"ada1", "bob2", "ada2", "bob1"}));
}

TEST_F(RunQueueTest, ARunThatConcludesOrIsPausedHoldsNoPlace) {
  Add("ada1", "ada");
  Start("ada1");
  Add("bob1", "bob");
  EXPECT_EQ(Next(1), "none");
  queue_.Find("ada1")->concluding = true;
  EXPECT_EQ(Next(1), "bob1");
  queue_.Find("ada1")->concluding = false;
  queue_.Find("ada1")->paused = true;
  EXPECT_EQ(Next(1), "bob1");
}

}  // namespace
}  // namespace evald

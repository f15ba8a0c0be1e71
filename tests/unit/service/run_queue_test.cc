#include "orchestrator/service/run_queue.h"

#include <gtest/gtest.h>

#include <tuple>

namespace evald {
namespace {

// The queue only asks whether a run has an evaluation.
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
  static QueuedRun* Stage(QueuedRun* run) {
    run->config.checkpoint = "/checkpoint";
    return run;
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
  EXPECT_EQ(Next(1), "none");
  queue_.Remove(1);
  EXPECT_EQ(Next(2), "bob1");
}

TEST_F(RunQueueTest, ThePlacesAreNoOneUsersAlone) {
  Add("ada1", "ada");
  Add("ada2", "ada");
  Start("ada1");
  Start("ada2");
  Add("ada3", "ada");
  Add("bob1", "bob");
  EXPECT_EQ(Next(2), "bob1");
  Start("bob1");
  Add("bob2", "bob");
  EXPECT_EQ(Next(2), "none");
  Add("cy1", "cy");  // both places are taken, each by a user
  EXPECT_EQ(Next(2), "none");
  queue_.Remove(2);
  EXPECT_EQ(Next(2), "none");
  queue_.Remove(1);
  EXPECT_EQ(Next(2), "ada3");  // the oldest run of the users who have no active run
}

TEST_F(RunQueueTest, RisingPrioritiesGiveOneUserNoMoreThanTwiceThePlaces) {
  for (int priority = 0; priority < 5; ++priority) {
    const std::string id = "ada" + std::to_string(priority);
    Add(id, "ada", priority);
    EXPECT_EQ(Next(2), priority < 4 ? id : "none");
    if (priority < 4) Start(id);
  }
  Add("bob1", "bob", -100);
  EXPECT_EQ(Next(2), "bob1");
}

TEST_F(RunQueueTest, ARunWithoutSpaceIsPassed) {
  Stage(Add("big", "mal", 50))->no_space = true;
  EXPECT_EQ(Next(2), "none");
  Stage(Add("ada1", "ada"));
  EXPECT_EQ(Next(2), "ada1");
}

TEST_F(RunQueueTest, ARunWithoutSpaceIsNotPassedForEver) {
  QueuedRun* big = Stage(Add("big", "mal"));
  big->no_space = true;
  Stage(Add("ada1", "ada"));
  Start("ada1");
  Stage(Add("ada2", "ada"));
  for (int i = 0; i < RunQueue::kPassesMax; ++i) {
    EXPECT_EQ(Next(2), "ada2");
    queue_.CountPass(*queue_.Find("ada2"));
  }
  EXPECT_EQ(Next(2), "none");  // ada1's room is kept for ada1
  Add("no checkpoint", "ada");
  EXPECT_EQ(Next(2), "no checkpoint");
  Stage(Add("urgent", "ada", 1));
  EXPECT_EQ(Next(2), "urgent");
  queue_.Remove(queue_.Find("urgent")->number);
  queue_.Find("ada1")->paused = true;  // a paused run gives nothing back
  EXPECT_EQ(Next(2), "ada2");
}

TEST_F(RunQueueTest, OnlyRunsAtWorkReleaseSpace) {
  Stage(Add("ada1", "ada"));
  EXPECT_FALSE(queue_.SpaceMayCome());
  Start("ada1");
  EXPECT_TRUE(queue_.SpaceMayCome());
  queue_.Find("ada1")->paused = true;
  EXPECT_FALSE(queue_.SpaceMayCome());
  Add("ada2", "ada");
  Start("ada2");  // nothing is staged for this run
  EXPECT_FALSE(queue_.SpaceMayCome());
}

TEST_F(RunQueueTest, APausedRunIsAskedForItsSpaceAndThenReleasesIt) {
  QueuedRun* waiting = Stage(Add("waiting", "bob"));
  for (const auto& [id, user, priority] :
       {std::tuple("urgent", "mal", 5), {"oldest", "mal", 0}, {"newest", "mal", 0}}) {
    Stage(Add(id, user, priority))->config.checkpoint = std::string("/") + id;
    Start(id);
  }
  EXPECT_EQ(queue_.NextToYield(*waiting), nullptr) << "runs at work keep their room";
  for (const char* id : {"urgent", "oldest", "newest"}) queue_.Find(id)->paused = true;
  EXPECT_FALSE(queue_.SpaceMayCome());
  EXPECT_EQ(queue_.NextToYield(*waiting)->id, "oldest");
  Stage(Add("own", "bob"))->config.checkpoint = "/own";
  Start("own");
  queue_.Find("own")->paused = true;
  EXPECT_EQ(queue_.NextToYield(*waiting)->id, "own");

  EXPECT_FALSE(queue_.AnyYields());
  queue_.Find("own")->yields = true;
  EXPECT_TRUE(queue_.AnyYields());
  EXPECT_TRUE(queue_.SpaceMayCome());
  EXPECT_EQ(queue_.NextToYield(*waiting)->id, "oldest");
  EXPECT_EQ(queue_.WhoHoldsSpace(),
            "run own (paused; gives its space up once its trials and scores under way are done), "
            "run urgent (paused), run oldest (paused), run newest (paused)");
  queue_.Find("own")->evaluation = nullptr;
  EXPECT_FALSE(queue_.AnyYields());
  EXPECT_FALSE(queue_.SpaceMayCome());
}

TEST_F(RunQueueTest, APausedRunKeepsSpaceThatARunAtWorkNeedsToo) {
  QueuedRun* waiting = Stage(Add("waiting", "bob"));
  for (const char* id : {"paused", "at work"}) {
    Stage(Add(id, "mal"))->config.checkpoint = "/shared";
    Start(id);
  }
  queue_.Find("paused")->paused = true;
  EXPECT_EQ(queue_.NextToYield(*waiting), nullptr);
  queue_.Find("at work")->paused = true;
  EXPECT_EQ(queue_.NextToYield(*waiting)->id, "paused");
}

TEST_F(RunQueueTest, ARunThatLostItsSpaceWaitsForOthersAndNotForItself) {
  QueuedRun* lost = Stage(Add("ada1", "ada"));
  Start("ada1");
  EXPECT_FALSE(queue_.OthersHoldSpace(*lost));
  Stage(Add("bob1", "bob"));
  EXPECT_FALSE(queue_.OthersHoldSpace(*lost));  // bob1 has not started
  Start("bob1");
  EXPECT_TRUE(queue_.OthersHoldSpace(*lost));
  queue_.Find("bob1")->paused = true;  // a paused run gives its space up
  EXPECT_TRUE(queue_.OthersHoldSpace(*lost));
}

TEST_F(RunQueueTest, UsersTakeTurnsInLookingForSpace) {
  const std::pair<const char*, int64_t> looked[] = {{"ada", 5}, {"ada", 2}, {"bob", 4}};
  for (const auto& [user, at] : looked) {
    QueuedRun* run = Add(user + std::to_string(at), user);
    run->no_space = true;
    run->looked_us = at;
  }
  EXPECT_EQ(queue_.LookedAtLongestAgo()->id, "bob4");
  queue_.Find("bob4")->looked_us = 6;
  EXPECT_EQ(queue_.LookedAtLongestAgo()->id, "ada2");
  queue_.Find("ada2")->looked_us = 7;
  EXPECT_EQ(queue_.LookedAtLongestAgo()->id, "bob4");
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

TEST_F(RunQueueTest, ARunThatOnlyAggregatesHoldsNoPlace) {
  Add("ada1", "ada");
  Start("ada1");
  Add("bob1", "bob");
  EXPECT_EQ(Next(1), "none");
  queue_.Find("ada1")->aggregating = true;
  EXPECT_EQ(Next(1), "bob1");
}

TEST_F(RunQueueTest, ARunWithoutAnyDeviceHoldsNoPlaceButCountsForItsUser) {
  for (const char* id : {"ada1", "ada2"}) {
    Add(id, "ada");
    Start(id);
    queue_.Find(id)->stranded = true;
  }
  Add("bob1", "bob");
  EXPECT_EQ(Next(1), "bob1");
  Add("ada3", "ada");
  queue_.Find("bob1")->concluding = true;
  Start("bob1");
  EXPECT_EQ(Next(1), "none") << "twice the places are at most one user's";
  EXPECT_EQ(Next(2), "ada3");
}

}  // namespace
}  // namespace evald

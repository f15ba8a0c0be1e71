#include "orchestrator/fleet/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "orchestrator/fleet/work_thread.h"

namespace evald {
namespace {

constexpr int64_t kSecond = 1'000'000;
using std::chrono::milliseconds;

TEST(LoopTurnCounterTest, PutsEachTurnIntoTheBucketOfItsLength) {
  LoopTurnCounter counter;
  for (const double seconds : {0.00005, 0.0001, 0.0002, 2.0, 60.0})
    counter.Add(kSecond, seconds, 0);
  const LoopTurns turns = counter.Look(kSecond);
  EXPECT_EQ(turns.counts[0], 2u) << "a bound belongs to its bucket";
  EXPECT_EQ(turns.counts[1], 1u);
  EXPECT_EQ(turns.counts[8], 1u);
  EXPECT_EQ(turns.counts[9], 1u) << "longer than every bound";
  EXPECT_EQ(turns.count, 5u);
  EXPECT_DOUBLE_EQ(turns.sum_s, 62.00035);
}

TEST(LoopTurnCounterTest, KnowsTheLongestTurnsOfTheLastMinute) {
  LoopTurnCounter counter;
  counter.Add(1 * kSecond, 3, 0.5);
  counter.Add(30 * kSecond, 1, 0.75);
  EXPECT_EQ(counter.Look(30 * kSecond).longest_s, 3);
  EXPECT_EQ(counter.Look(59 * kSecond).longest_s, 3);
  EXPECT_EQ(counter.Look(59 * kSecond).longest_processor_s, 0.75);
  EXPECT_EQ(counter.Look(66 * kSecond).longest_s, 1) << "more than a minute ago";
  counter.Add(80 * kSecond, 2, 0);
  EXPECT_EQ(counter.Look(80 * kSecond).longest_s, 2);
  EXPECT_EQ(counter.Look(200 * kSecond).longest_s, 0);
}

TEST(LoopTest, CountsWhatItRunsAsTurns) {
  Loop loop;
  loop.Post([] { std::this_thread::sleep_for(milliseconds(60)); });
  loop.After(milliseconds(1), [&] { loop.Post([&] { loop.Stop(); }); });
  loop.Run();
  const LoopTurns turns = loop.turns();
  EXPECT_EQ(turns.count, 3u) << "waiting is no turn";
  EXPECT_GE(turns.longest_s, 0.06);
  EXPECT_LT(turns.longest_processor_s, turns.longest_s) << "it slept";
}

TEST(LoopTest, CountsAPartOfATurnWithItsTurn) {
  Loop loop;
  loop.Post([&] {
    const LoopTurn part("a part");
    const LoopTurn of_part("of a part");
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(loop.turns().count, 1u);
}

TEST(LoopTest, CountsATurnThatThrows) {
  Loop loop;
  loop.Post([] { throw Error(ErrorKind::kInternal, "x"); });
  EXPECT_THROW(loop.Run(), Error);
  EXPECT_EQ(loop.turns().count, 1u);
  const LoopTurn none("no loop runs on this thread");
}

TEST(WorkThreadTest, DoesOneAfterTheOtherAndTellsTheLoop) {
  Loop loop;
  WorkThread thread("work", &loop, WorkThread::AtEnd::kFinish);
  std::vector<int> done, told;
  const std::thread::id here = std::this_thread::get_id();
  for (int i = 0; i < 100; ++i) {
    thread.Post(
        [&done, i, here] {
          EXPECT_NE(std::this_thread::get_id(), here);
          done.push_back(i);
        },
        [&, i](const std::optional<Error>& error) {
          EXPECT_EQ(std::this_thread::get_id(), here);
          EXPECT_FALSE(error);
          told.push_back(i);
          if (i == 99) loop.Stop();
        });
  }
  loop.Run();
  std::vector<int> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(done, all);
  EXPECT_EQ(told, all);
}

TEST(WorkThreadTest, TellsWhatWasThrownAndGoesOn) {
  Loop loop;
  WorkThread thread("work", &loop, WorkThread::AtEnd::kFinish);
  std::vector<std::pair<ErrorKind, std::string>> errors;
  const auto note = [&](const std::optional<Error>& error) {
    errors.emplace_back(error.value().kind(), error->what());
  };
  thread.Post([] { throw Error(ErrorKind::kInput, "bad", "mend it"); }, note);
  thread.Post([] { throw std::runtime_error("worse"); }, note);
  thread.Post([] { throw Error(ErrorKind::kInput, "nobody asks"); });
  thread.Post([] {}, [&](const std::optional<Error>&) { loop.Stop(); });
  loop.Run();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0], std::pair(ErrorKind::kInput, std::string("bad; mend it")));
  EXPECT_EQ(errors[1], std::pair(ErrorKind::kInternal, std::string("worse")));
}

TEST(WorkThreadTest, FinishesWhatWaitsWhenItEnds) {
  Loop loop;
  int done = 0;
  {
    WorkThread thread("work", &loop, WorkThread::AtEnd::kFinish);
    for (int i = 0; i < 100; ++i) thread.Post([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(WorkThreadTest, DropsWhatWaitsWhenItIsToldTo) {
  Loop loop;
  std::promise<void> begun, go;
  const auto held = std::make_shared<int>();
  auto thread = std::make_unique<WorkThread>("work", &loop, WorkThread::AtEnd::kDrop);
  thread->Post([&] {
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  bool done = false;
  thread->Post([&done, held] { done = true; });
  std::thread ending([&] { thread.reset(); });
  // `held` is dropped before the work under way has ended
  while (held.use_count() > 1) std::this_thread::yield();
  go.set_value();
  ending.join();
  EXPECT_FALSE(done);
}

}  // namespace
}  // namespace evald

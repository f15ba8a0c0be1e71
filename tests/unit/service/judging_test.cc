#include "orchestrator/service/judging.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace evald {
namespace {

TEST(JudgingTest, OneJudgementOfAUserAtATimeAndAnotherUserIsJudgedMeanwhile) {
  Loop loop;
  std::latch bob_judged(1);
  std::atomic<int> at_work{0}, most{0};
  int done = 0;
  Judging judging(&loop);
  const auto heard = [&](const std::optional<Error>& error) {
    EXPECT_FALSE(error);
    if (++done == 5) loop.Stop();
  };
  for (int i = 0; i < 4; ++i) {
    judging.Post(
        "ada",
        [&] {
          most = std::max(most.load(), ++at_work);
          bob_judged.wait();  // ada's judgement takes until bob's is done
          --at_work;
        },
        heard);
  }
  judging.Post("bob", [&] { bob_judged.count_down(); }, heard);
  loop.Run();
  EXPECT_EQ(most, 1);
}

TEST(JudgingTest, WhatAJudgementThrowsIsHeard) {
  Loop loop;
  Judging judging(&loop);
  std::string heard;
  judging.Post(
      "ada", [] { throw Error(ErrorKind::kInput, "no such task"); },
      [&](const std::optional<Error>& error) {
        heard = error ? error->message() : "nothing";
        loop.Stop();
      });
  loop.Run();
  EXPECT_EQ(heard, "no such task");
}

TEST(JudgingTest, WhatIsNotTakenIsNeitherDoneNorHeard) {
  Loop loop;
  std::latch go_on(1);
  size_t done = 0;
  {
    Judging judging(&loop);
    std::latch begun(1);
    const auto heard = [&](const std::optional<Error>&) {
      if (++done == 1 + Judging::kWaitingPerUserMax) loop.Stop();
    };
    judging.Post(
        "ada",
        [&] {
          begun.count_down();
          go_on.wait();
        },
        heard);
    begun.wait();
    for (size_t i = 0; i < Judging::kWaitingPerUserMax; ++i)
      EXPECT_EQ(judging.Post("ada", [] {}, heard), Taken::kYes);
    EXPECT_EQ(judging.Post(
                  "ada", [] { ADD_FAILURE(); }, [](const auto&) { ADD_FAILURE(); }),
              Taken::kUserIsFull);
    go_on.count_down();
    loop.Run();
  }
  EXPECT_EQ(done, 1 + Judging::kWaitingPerUserMax);
}

}  // namespace
}  // namespace evald

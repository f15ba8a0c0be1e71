// Tokens that are computed, and tokens that are taken over from other sequences.
#include "worker/native/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "native_test_util.h"

namespace evald::native {
namespace {

class SchedulerTest : public testing::Test {
 protected:
  std::vector<int32_t> Tokens(int count, int seed) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(2 + (i * 37 + seed * 101) % 300);
    return tokens;
  }
  // Adds a sequence that needs the logits of its last token.
  void Add(Scheduler* scheduler, std::vector<int32_t> tokens) {
    auto sequence = std::make_unique<Sequence>();
    sequence->logits_from = static_cast<int64_t>(tokens.size()) - 1;
    sequence->positions_max = static_cast<int64_t>(tokens.size());
    sequence->tokens = std::move(tokens);
    sequence->wish = [](int64_t) { return Wish{}; };
    sequence->on_answer = [this](Sequence*, int64_t, const Answer&) {
      ++finished_;
      return true;
    };
    scheduler->Add(std::move(sequence));
  }
  void Run(Scheduler* scheduler, int64_t rows = 64) {
    while (scheduler->size() > 0) ASSERT_GT(scheduler->Compute(rows), 0);
  }

  BareModel bare_{GoldenPath("untied")};
  int finished_ = 0;
};

TEST_F(SchedulerTest, ChoicesOfOneQuestionComputeItOnce) {
  Scheduler scheduler({}, &bare_.model, &bare_.cache);
  for (int choice = 0; choice < 4; ++choice) Add(&scheduler, Tokens(150, 1));
  Run(&scheduler);
  EXPECT_EQ(finished_, 4);
  EXPECT_EQ(scheduler.rows_computed(), 150 + 3);
  EXPECT_EQ(scheduler.rows_reused(), 3 * 149);
}

TEST_F(SchedulerTest, SharedShotsAreComputedOnce) {
  Scheduler scheduler({}, &bare_.model, &bare_.cache);
  for (int question = 0; question < 10; ++question) {
    std::vector<int32_t> tokens = Tokens(100, 2);
    for (const int32_t token : Tokens(20, 3 + question)) tokens.push_back(token);
    Add(&scheduler, tokens);
  }
  Run(&scheduler);
  EXPECT_EQ(finished_, 10);
  EXPECT_EQ(scheduler.rows_computed(), 100 + 10 * 20);
}

// Like a suite of few-shot tasks: all requests are held at once, in any order. Each task's shots,
// each question and each choice are computed once.
TEST_F(SchedulerTest, OfAllThatIsHeldEveryPrefixIsComputedOnce) {
  constexpr int kTasks = 3, kQuestions = 60, kChoices = 4;
  std::vector<std::vector<int32_t>> all;
  for (int task = 0; task < kTasks; ++task) {
    for (int question = 0; question < kQuestions; ++question) {
      std::vector<int32_t> tokens = Tokens(100, task);
      tokens.push_back(2 + question);  // no two questions begin alike
      for (const int32_t token : Tokens(39, 3 + question)) tokens.push_back(token);
      for (int choice = 0; choice < kChoices; ++choice) {
        all.push_back(tokens);
        all.back().push_back(10 + choice);
        all.back().push_back(20 + choice);
      }
    }
  }
  std::shuffle(all.begin(), all.end(), std::mt19937(7));
  Scheduler scheduler({8}, &bare_.model, &bare_.cache);
  for (const auto& tokens : all) Add(&scheduler, tokens);
  Run(&scheduler, 100);
  EXPECT_EQ(finished_, kTasks * kQuestions * kChoices);
  const int64_t least = kTasks * (100 + kQuestions * (40 + kChoices * 2));
  EXPECT_GE(scheduler.rows_computed(), least);
  EXPECT_LE(scheduler.rows_computed(), least * 101 / 100) << "a few rows are not waited for";
}

// The cache has room for one task's shots and little more. Taken by prefix, the shots are still
// computed once.
TEST_F(SchedulerTest, ASmallCacheDoesWithOnePrefixAfterTheOther) {
  CpuDevice device(bare_.config, SelectKernels("auto"), &bare_.pool);
  KvCache cache(&device, 6 * device.page_bytes());
  Model model(bare_.config, bare_.weights, &device);
  Scheduler scheduler({2}, &model, &cache);
  for (int question = 0; question < 12; ++question) {
    for (int task = 0; task < 4; ++task) {
      std::vector<int32_t> tokens = Tokens(128, task);
      tokens.push_back(2 + question);
      for (const int32_t token : Tokens(19, question)) tokens.push_back(token);
      Add(&scheduler, tokens);
    }
  }
  Run(&scheduler);
  EXPECT_EQ(finished_, 48);
  EXPECT_EQ(scheduler.rows_computed(), 4 * (128 + 12 * 20));
  EXPECT_LE(cache.in_use(), 6);
}

TEST_F(SchedulerTest, ClearedWorkIsNotWaitedFor) {
  Scheduler scheduler({4}, &bare_.model, &bare_.cache);
  for (int choice = 0; choice < 4; ++choice) Add(&scheduler, Tokens(150, 1));
  scheduler.Compute(10);
  scheduler.Clear();
  EXPECT_EQ(scheduler.size(), 0u);
  for (int choice = 0; choice < 4; ++choice) Add(&scheduler, Tokens(150, 1));
  Run(&scheduler);
  EXPECT_EQ(finished_, 4);
}

TEST_F(SchedulerTest, FinishedSequencesAreReused) {
  Scheduler scheduler({}, &bare_.model, &bare_.cache);
  Add(&scheduler, Tokens(200, 1));
  Run(&scheduler);
  Add(&scheduler, Tokens(120, 1));
  Run(&scheduler);
  EXPECT_EQ(scheduler.rows_computed(), 200 + 1);
}

TEST_F(SchedulerTest, NothingInCommonNothingReused) {
  Scheduler scheduler({}, &bare_.model, &bare_.cache);
  for (int i = 0; i < 5; ++i) Add(&scheduler, Tokens(70, i));
  Run(&scheduler);
  EXPECT_EQ(scheduler.rows_reused(), 0);
}

TEST_F(SchedulerTest, PagesComeBack) {
  {
    Scheduler scheduler({4, false}, &bare_.model, &bare_.cache);
    for (int i = 0; i < 9; ++i) Add(&scheduler, Tokens(100 + 13 * i, i));
    Run(&scheduler);
    EXPECT_EQ(bare_.cache.in_use(), 0) << "nothing is retained";
    for (int i = 0; i < 9; ++i) Add(&scheduler, Tokens(100, i));
    scheduler.Compute(10);
    EXPECT_GT(bare_.cache.in_use(), 0);
    scheduler.Clear();
    EXPECT_EQ(bare_.cache.in_use(), 0);
  }
}

TEST_F(SchedulerTest, TightCacheStillFinishesAll) {
  for (const int pages : {3, 4, 5, 7}) {
    CpuDevice device(bare_.config, SelectKernels("auto"), &bare_.pool);
    KvCache cache(&device, static_cast<uint64_t>(pages) * device.page_bytes());
    Model model(bare_.config, bare_.weights, &device);
    Scheduler scheduler({8}, &model, &cache);
    finished_ = 0;
    for (int i = 0; i < 20; ++i) Add(&scheduler, Tokens(60 + 7 * i % 130, i % 3));
    Run(&scheduler, 32);
    EXPECT_EQ(finished_, 20);
    EXPECT_LE(cache.in_use(), pages);
  }
}

}  // namespace
}  // namespace evald::native

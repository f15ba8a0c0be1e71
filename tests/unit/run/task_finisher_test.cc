// Tasks are finished with turns for each user. A task that takes an hour delays no other user, and
// ends when nobody waits for it.
#include "orchestrator/run/task_finisher.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/hash.h"
#include "evald/score.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

class TaskFinisherTest : public ::testing::Test {
 protected:
  // A scored task of `documents` documents. The standard error of its median uses `iterations`
  // samples.
  FinishedTask Task(const std::string& user, int documents, int iterations) {
    const std::filesystem::path folder = scratch_.path() / user;
    TaskDefinition task = test::AnswerTask();
    task.metrics[0].aggregation = "median";
    task.filters.resize(1);
    test::PrepareAnswers(task, documents, folder / "prepared");
    std::string generations, scores;
    FinishedTask finished{.definition = task, .prepared = folder / "prepared"};
    for (int i = 0; i < documents; ++i) {
      generations += ToLine(ToJson(test::Answer(i, "x"))) + "\n";
      ScoredDocument score;
      score.doc_id = i;
      score.filters.push_back({"strict", {"x"}, {{"exact_match", i % 2 == 0 ? 1.0 : 0.0}}});
      scores += ToLine(ToJson(score)) + "\n";
      finished.generation_of.push_back(0);
      finished.score_of.push_back(0);
    }
    test::WriteText(folder / "generations.jsonl", generations);
    test::WriteText(folder / "scores.jsonl", scores);
    finished.generation_files = {{folder / "generations.jsonl", HashHex(generations)}};
    finished.score_files = {{folder / "scores.jsonl", HashHex(scores)}};
    finished.samples = folder / "samples.jsonl";
    finished.bootstrap_iters = iterations;
    finished.user = user;
    return finished;
  }
  // More draws than a processor makes in minutes.
  FinishedTask Endless(const std::string& user) { return Task(user, 40'000, 1'000'000); }

  TemporaryFolder scratch_;
  Loop loop_;
};

TEST_F(TaskFinisherTest, AnotherUsersTaskIsFinishedMeanwhileAndACancelledOneEnds) {
  TaskFinisher finisher(&loop_);
  FinishedTask endless = Endless("ada");
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  endless.cancel = cancel;
  std::string heard;
  const auto not_done = [](const TaskResult&) { FAIL() << "4e10 draws were made"; };
  const auto failed = [&](const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    heard += "ada ";
    if (heard == "bob ada ada ") loop_.Stop();
  };
  finisher.Submit(endless, not_done, failed);
  finisher.Submit(endless, not_done, failed);
  finisher.Submit(
      Task("bob", 8, 1000),
      [&](const TaskResult& result) {
        EXPECT_EQ(result.entry["exact_match,strict"], 1.0);
        EXPECT_TRUE(result.entry["exact_match_stderr,strict"].is_number());
        heard += "bob ";
        *cancel = true;
      },
      [](const Error& error) { FAIL() << error.what(); });
  loop_.Run();
  EXPECT_EQ(heard, "bob ada ada ");
}

TEST_F(TaskFinisherTest, WhatIsUnderWayEndsWithTheFinisher) {
  auto finisher = std::make_unique<TaskFinisher>(&loop_);
  finisher->Submit(Endless("ada"), [](const TaskResult&) { FAIL(); }, [](const Error&) {});
  finisher.reset();  // does not wait for 4e10 draws
}

}  // namespace
}  // namespace evald

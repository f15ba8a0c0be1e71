// Tasks are finished with turns for each user. A task that takes an hour delays no other user, and
// ends when nobody waits for it.
#include "orchestrator/run/task_finisher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json_walk.h"
#include "base/jsonl.h"
#include "evald/score.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/little_memory.h"
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

  // A task with process_results g and the aggregation f of this code, and documents with long texts
  // as values: 3000 are more than go to a process at once.
  FinishedTask OwnTask(const std::string& code, int documents = 3000) {
    FinishedTask finished = Task("own", documents, 0);
    TaskDefinition& task = finished.definition;
    task.metrics[0].aggregation = "!function /t/utils.f";
    task.process_results = "/t/utils.g";
    task.sources["code"] = Json::object();
    finished.prepared = scratch_.path() / HashHex(code);
    test::PrepareAnswers(task, documents, finished.prepared,
                         {{"files", {{"/t/utils.py", "def g(doc, results): return {}\n" + code}}},
                          {"roots", Json::array()},
                          {"seed", 1}});
    std::string scores;
    for (int i = 0; i < documents; ++i) {
      ScoredDocument score;
      score.doc_id = i;
      score.filters.push_back({"strict", {"x"}, {{"exact_match", fmt::format("{} {}", i, long_)}}});
      scores += ToLine(ToJson(score)) + "\n";
    }
    finished.score_files[0] = {scratch_.path() / "own" / "own.jsonl", HashHex(scores)};
    test::WriteText(finished.score_files[0].path, scores);
    return finished;
  }
  // Why this host isolates no process; "" if it does.
  static std::string WhyNoBox(const TaskCodeOptions& options) {
    return CaughtText([&] { TaskCode started(options); });
  }

  const std::string long_ = std::string(3000, 'x');
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

TEST_F(TaskFinisherTest, SamplesSoFarAreThoseOfScoredDocumentsInAFileWithoutAName) {
  FinishedTask task = Task("ada", 8, 0);
  for (const size_t document : {0, 3, 7})
    task.score_of[document] = task.generation_of[document] = FinishedTask::kNoFile;
  const auto samples = WriteSamplesSoFar(task);
  EXPECT_EQ(samples->scored, 5);
  EXPECT_EQ(samples->documents, 8);
  EXPECT_FALSE(std::filesystem::exists(task.samples));
  std::vector<int> found;
  std::istringstream lines(ReadAt(samples->file, 0, 1 << 20));
  for (std::string line; std::getline(lines, line);) found.push_back(Json::parse(line)["doc_id"]);
  EXPECT_THAT(found, testing::ElementsAre(1, 2, 4, 5, 6));

  test::WriteText(task.score_files[0].path, "{}\n");
  EXPECT_EQ(Caught([&] { WriteSamplesSoFar(task); }).kind(), ErrorKind::kInfrastructure)
      << "another file than the committed one";
}

// One document with many long answers: a pipeline that keeps them all, and one that keeps one.
TEST_F(TaskFinisherTest, LongAnswersToADocumentAreNotHeldTogether) {
  constexpr int kRepeats = 48;
  const std::filesystem::path folder = scratch_.path();
  TaskDefinition task = test::AnswerTask();
  task.repeats = kRepeats;
  test::PrepareAnswers(task, 1, folder / "prepared");
  const std::string text = "é\n" + std::string(1 << 20, 'x');
  FinishedTask finished{.definition = task, .prepared = folder / "prepared"};
  {
    std::string lines;
    for (int i = 0; i < kRepeats; ++i) lines += test::Line(test::Answer(0, text, i));
    test::WriteText(folder / "generations.jsonl", lines);
    finished.generation_files = {{folder / "generations.jsonl", HashHex(lines)}};
    ScoredDocument score;
    const Json all = Json::array({std::vector<std::string>(kRepeats, text)});
    score.filters.push_back({"strict", all, {{"exact_match", 1.0}}, {}});
    score.filters.push_back({"flexible", Json::array({text}), {{"exact_match", 0.0}}, {}});
    lines = ToLine(ToJson(score)) + "\n";
    test::WriteText(folder / "scores.jsonl", lines);
    finished.score_files = {{folder / "scores.jsonl", HashHex(lines)}};
  }
  finished.generation_of = finished.score_of = {0};
  finished.samples = folder / "samples.jsonl";
  finished.bootstrap_iters = 0;
  {
    const LittleMemory memory(24 << 20);
    EXPECT_EQ(AggregateFinished(finished).entry["exact_match,strict"], 1.0);
  }
  std::vector<Json> samples;
  ForEachJsonLine(finished.samples,
                  [&](size_t, Json&& sample) { samples.push_back(std::move(sample)); });
  ASSERT_EQ(samples.size(), 2u);
  const Json answers = Json::array({std::vector<std::string>(kRepeats, text)});
  EXPECT_EQ(samples[0]["resps"], answers);
  EXPECT_EQ(samples[0]["filtered_resps"], answers);
  EXPECT_EQ(samples[1]["filtered_resps"], Json::array({text}));
}

// The task has two filters, for each of which the answers are read once.
TEST_F(TaskFinisherTest, TruncatedAnswersAreCountedOnce) {
  const std::filesystem::path folder = scratch_.path();
  TaskDefinition task = test::AnswerTask();
  task.repeats = 3;
  test::PrepareAnswers(task, 1, folder / "prepared");
  FinishedTask finished{.definition = task, .prepared = folder / "prepared"};
  std::string lines;
  for (int i = 0; i < 3; ++i) {
    Generation answer = test::Answer(0, "42", i);
    if (i > 0) answer.finish = FinishReason::kLength;
    lines += test::Line(answer);
  }
  test::WriteText(folder / "generations.jsonl", lines);
  finished.generation_files = {{folder / "generations.jsonl", HashHex(lines)}};
  ScoredDocument score;
  for (const char* filter : {"strict", "flexible"})
    score.filters.push_back({filter, Json::array({"42"}), {{"exact_match", 1.0}}, {}});
  lines = ToLine(ToJson(score)) + "\n";
  test::WriteText(folder / "scores.jsonl", lines);
  finished.score_files = {{folder / "scores.jsonl", HashHex(lines)}};
  finished.generation_of = finished.score_of = {0};
  finished.samples = folder / "samples.jsonl";
  finished.bootstrap_iters = 0;
  const TaskResult result = AggregateFinished(finished);
  EXPECT_EQ(result.texts, 3);
  EXPECT_EQ(result.truncated_answers, 2);
}

TEST_F(TaskFinisherTest, AnAggregationOfTheTasksOwnGetsTheValuesInOrder) {
  FinishedTask task = OwnTask("def f(items): return [len(items), items[0], items[-1]]\n");
  EXPECT_THROW(AggregateFinished(task), Error) << "this host does not run the code of tasks";
  task.code.allowed = TaskCodeOptions::Allowed::kBoxed;
  if (const std::string why = WhyNoBox(task.code); !why.empty()) GTEST_SKIP() << why;
  const TaskResult result = AggregateFinished(task);
  EXPECT_EQ(result.entry["exact_match,strict"], (Json{3000, "0 " + long_, "2999 " + long_}));
  EXPECT_EQ(result.entry["exact_match_stderr,strict"], "N/A");
  EXPECT_EQ(result.entry["sample_len"], 3000);
}

TEST_F(TaskFinisherTest, AFaultOfAnAggregationIsTheTasksOwn) {
  FinishedTask task = OwnTask("def f(items): return items['a']\n");
  task.code.allowed = TaskCodeOptions::Allowed::kBoxed;
  if (const std::string why = WhyNoBox(task.code); !why.empty()) GTEST_SKIP() << why;
  const Error error = Caught([&] { AggregateFinished(task); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(),
              testing::HasSubstr("task 'sums', metric 'exact_match', filter 'strict': the function "
                                 "'/t/utils.f': TypeError"));
  test::WriteText(task.score_files[0].path, "damaged\n");
  EXPECT_EQ(Caught([&] { AggregateFinished(task); }).kind(), ErrorKind::kInfrastructure);
}

TEST_F(TaskFinisherTest, AnAggregationWithoutEndEndsWithTheFinisher) {
  for (const char* code : {"def f(items):\n  while True: pass\n", "while True: pass\n"}) {
    FinishedTask task = OwnTask(code, 8);
    task.code.allowed = TaskCodeOptions::Allowed::kBoxed;
    if (const std::string why = WhyNoBox(task.code); !why.empty()) GTEST_SKIP() << why;
    const int64_t until = MonotonicMicros() + 3'000'000;
    const auto stopped = [&] { return MonotonicMicros() > until; };
    EXPECT_THAT(CaughtText([&] { AggregateFinished(task, stopped); }, ErrorKind::kInfrastructure),
                testing::HasSubstr("the task's code was stopped"));
  }
}

TEST_F(TaskFinisherTest, WhatIsUnderWayEndsWithTheFinisher) {
  auto finisher = std::make_unique<TaskFinisher>(&loop_);
  finisher->Submit(Endless("ada"), [](const TaskResult&) { FAIL(); }, [](const Error&) {});
  finisher.reset();  // does not wait for 4e10 draws
}

}  // namespace
}  // namespace evald

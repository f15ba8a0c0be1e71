// Metric jobs that ask a judge.
#include "metrics/judged_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "base/jsonl.h"
#include "evald/score.h"
#include "metrics/job.h"
#include "tests/unit/http_client/scripted_server.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using http_client::test::Script;
using http_client::test::ScriptedServer;
using ::testing::HasSubstr;

constexpr int kDocuments = 20;

TaskDefinition JudgedTask() {
  TaskDefinition task = test::AnswerTask();
  MetricSpec judge;
  judge.metric = "judge";
  judge.function = kJudgeFunction;
  judge.aggregation = "mean";
  judge.kwargs = {{"prompt", "Document {{n}}: {{response}}"},
                  {"pattern", "Score: ([0-9]+)"},
                  {"range", {0, 100}},
                  {"reasks", 0}};
  task.metrics = {judge};
  task.filters = {{"none", {{"take_first", Json::object()}}}};
  return task;
}

Script Completion(const std::string& text) {
  return http_client::test::Answer(
      200, ToLine({{"choices", {{{"message", {{"content", text}}}}}},
                   {"usage", {{"prompt_tokens", 9}, {"completion_tokens", 2}}}}));
}

class JudgedJob : public ::testing::Test {
 protected:
  void SetUp() override {
    test::PrepareAnswers(JudgedTask(), kDocuments, scratch_.path() / "prepared");
    std::string lines;
    for (int i = 0; i < kDocuments; ++i)
      lines += test::Line(test::Answer(i, "answer " + std::to_string(i)));
    test::WriteText(scratch_.path() / "generations.jsonl", lines);
  }

  // The judge's answer is made of the document's number.
  void Serve(const std::function<Script(int document)>& answer) {
    server_ = std::make_unique<ScriptedServer>([answer](const std::string& request) {
      std::smatch match;
      std::regex_search(request, match, std::regex("Document ([0-9]+)"));
      return answer(std::stoi(match[1]));
    });
  }

  bool Run(protocol::JobDone* done, int64_t first = 0,
           std::chrono::microseconds time = std::chrono::minutes(1)) {
    protocol::Job job;
    job.job = 7;
    job.task = "sums";
    job.prepared = scratch_.path() / "prepared";
    job.first = first;
    job.end = kDocuments;
    job.generations = scratch_.path() / "generations.jsonl";
    job.file = scratch_.path() / ("scores" + std::to_string(first) + ".jsonl");
    job.run = "run-1";
    job.judge = {
        {"base_url", server_->url("/v1")}, {"model", "m"}, {"concurrency", 4}, {"retries", 0}};
    return RunJob(
        job, [] { return nullptr; }, nullptr, stop_, &count_, done, time, nullptr,
        scratch_.path() / "judge");
  }

  // The answers that are kept.
  size_t Kept() const {
    size_t answers = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(scratch_.path() / "judge"))
      answers += entry.is_regular_file() ? 1 : 0;
    return answers;
  }

  static std::map<int64_t, ScoredDocument> Scores(const protocol::JobDone& done) {
    std::map<int64_t, ScoredDocument> scores;
    int64_t last = -1;
    ForEachJsonLine(done.file, [&](size_t, Json&& line) {
      ScoredDocument score = ScoreFromJson(line, "line");
      EXPECT_GT(score.doc_id, last) << "in order";
      last = score.doc_id;
      scores[last] = std::move(score);
    });
    return scores;
  }

  TemporaryFolder scratch_;
  std::unique_ptr<ScriptedServer> server_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> hung_{false};
  std::atomic<int64_t> count_{0};
};

TEST_F(JudgedJob, ScoresAreTheJudges) {
  Serve([](int document) { return Completion("Score: " + std::to_string(document)); });
  protocol::JobDone done;
  ASSERT_TRUE(Run(&done));
  EXPECT_EQ(done.end, 0);
  EXPECT_TRUE(done.unscored.empty());
  EXPECT_EQ(done.stopped, "");
  EXPECT_EQ(count_, kDocuments);
  const auto scores = Scores(done);
  ASSERT_EQ(scores.size(), static_cast<size_t>(kDocuments));
  for (const auto& [document, score] : scores) {
    EXPECT_EQ(score.filters[0].metrics["judge"], static_cast<double>(document));
    EXPECT_EQ(score.judge, (JudgeUsage{.requests = 1, .tokens_in = 9, .tokens_out = 2}));
  }
}

TEST_F(JudgedJob, ADocumentWithoutAVerdictHasNoLine) {
  Serve([](int document) {
    return Completion(document == 0 || document == 7 || document == 8 ? "Hm." : "Score: 1");
  });
  protocol::JobDone done;
  ASSERT_TRUE(Run(&done));
  EXPECT_EQ(done.end, 0);
  ASSERT_EQ(done.unscored.size(), 2u);
  EXPECT_EQ(done.unscored[0].first, 0);
  EXPECT_EQ(done.unscored[0].end, 1);
  EXPECT_EQ(done.unscored[1].first, 7);
  EXPECT_EQ(done.unscored[1].end, 9) << "documents of one cause are one entry";
  EXPECT_THAT(done.unscored[1].cause, HasSubstr("matches nothing in 'Hm.'"));
  EXPECT_EQ(Scores(done).size(), static_cast<size_t>(kDocuments - 3));
}

TEST_F(JudgedJob, EndsEarlyWhenItsTimeIsUp) {
  Serve([](int) { return Completion("Score: 1"); });
  protocol::JobDone done;
  ASSERT_TRUE(Run(&done, 3, std::chrono::microseconds(0)));
  EXPECT_EQ(done.end, 4) << "at least one document is scored";
  EXPECT_EQ(Scores(done).size(), 1u);
}

TEST_F(JudgedJob, AJudgeThatIsDownEndsTheJob) {
  Serve([](int) { return http_client::test::Answer(500, "down"); });
  protocol::JobDone done;
  ASSERT_TRUE(Run(&done));
  EXPECT_THAT(done.stopped, HasSubstr("status 500: down"));
  EXPECT_GT(done.end, 0);
  EXPECT_LT(done.end, kDocuments);
  int64_t unscored = 0;
  for (const protocol::Unscored& range : done.unscored) unscored += range.end - range.first;
  EXPECT_EQ(unscored, done.end);
  EXPECT_TRUE(Scores(done).empty());
}

TEST_F(JudgedJob, StopsWithNothingCommittedAndKeepsWhatWasAnswered) {
  Serve([this](int document) {
    if (document == 5 && !hung_.exchange(true)) {
      stop_ = true;
      return Script{.bytes = "", .pause = std::chrono::seconds(1)};
    }
    return Completion("Score: 1");
  });
  protocol::JobDone done;
  EXPECT_FALSE(Run(&done));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "scores0.jsonl"));
  const size_t kept = Kept(), asked = server_->requests().size();
  EXPECT_GE(kept, 1u);
  stop_ = false;
  ASSERT_TRUE(Run(&done));
  EXPECT_EQ(Kept(), static_cast<size_t>(kDocuments));
  EXPECT_EQ(server_->requests().size() - asked, static_cast<size_t>(kDocuments) - kept);
}

}  // namespace
}  // namespace evald

// Jobs from files to files, the metric process on a socket, and its bad inputs.
#include "metrics/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/hash.h"
#include "evald/error.h"
#include "metrics/line_index.h"
#include "metrics/process.h"
#include "metrics/sandbox_options.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/little_memory.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using test::Answer;
using test::Line;
using ::testing::HasSubstr;

class JobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::PrepareAnswers(test::AnswerTask(), 20, scratch_.path() / "prepared");
    for (int i = 19; i >= 0; --i) all_ += Line(Answer(i, i % 2 ? "#### " + std::to_string(i) : ""));
    test::WriteText(scratch_.path() / "generations.jsonl", all_);
  }

  protocol::Job MakeJob(int64_t first, int64_t end) const {
    return {.job = 7,
            .task = "sums",
            .prepared = scratch_.path() / "prepared",
            .first = first,
            .end = end,
            .generations = scratch_.path() / "generations.jsonl",
            .file = scratch_.path() / "scores.jsonl"};
  }

  // The error with which the job ends.
  Error RunAndFail(const protocol::Job& job) {
    protocol::JobDone done;
    const Error error =
        Caught([&] { RunJob(job, [] { return nullptr; }, nullptr, stop_, &count_, &done); });
    EXPECT_FALSE(std::filesystem::exists(job.file));
    return error;
  }

  TemporaryFolder scratch_;
  std::string all_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> count_{0};
};

// Otherwise the score of an answer that somebody changed would count as the model's.
TEST_F(JobTest, GenerationsThatChangedSinceTheyWereCommittedAreNotScored) {
  protocol::Job job = MakeJob(0, 20);
  job.hash = HashHex(all_);
  job.attempt = 3;
  protocol::JobDone done;
  ASSERT_TRUE(RunJob(job, [] { return nullptr; }, nullptr, stop_, &count_, &done));
  EXPECT_EQ(done.attempt, 3);
  std::filesystem::remove(job.file);
  all_[all_.find("#### ") + 5] ^= 1;
  test::WriteText(scratch_.path() / "generations.jsonl", all_);
  const Error error = RunAndFail(job);
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.what(), HasSubstr("generations.jsonl: changed since it was committed"));
}

TEST_F(JobTest, ScoresASliceInOrder) {
  protocol::JobDone done;
  ASSERT_TRUE(RunJob(MakeJob(3, 9), [] { return nullptr; }, nullptr, stop_, &count_, &done));
  EXPECT_EQ(count_, 6);
  const std::string text = ReadFile(done.file);
  EXPECT_EQ(done.bytes, text.size());
  EXPECT_EQ(done.hash, HashHex(text));
  int64_t expected = 3;
  ForEachJsonLine(done.file, [&](size_t, Json&& line) {
    const ScoredDocument score = ScoreFromJson(line, "line");
    EXPECT_EQ(score.doc_id, expected);
    EXPECT_EQ(score.filters[0].metrics["exact_match"].get<double>(), expected % 2 ? 1.0 : 0.0);
    ++expected;
  });
  EXPECT_EQ(expected, 9);
}

// So that no user's jobs hold a metric process for long. The rest is another job.
TEST_F(JobTest, EndsEarlyWhenItsTimeIsUp) {
  protocol::JobDone done;
  ASSERT_TRUE(RunJob(
      MakeJob(3, 9), [] { return nullptr; }, nullptr, stop_, &count_, &done,
      std::chrono::microseconds(0)));
  EXPECT_EQ(done.end, 4) << "at least one document is scored";
  EXPECT_EQ(count_, 1);
  ForEachJsonLine(done.file,
                  [](size_t, Json&& line) { EXPECT_EQ(ScoreFromJson(line, "line").doc_id, 3); });
  EXPECT_EQ(done.hash, HashHex(ReadFile(done.file)));
}

TEST_F(JobTest, AMissingGenerationIsAnInfrastructureError) {
  test::WriteText(scratch_.path() / "generations.jsonl",
                  Line(Answer(0, "x")) + Line(Answer(2, "x")));
  const Error error = RunAndFail(MakeJob(0, 3));
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.what(), HasSubstr("document 1"));
}

TEST_F(JobTest, ADoubledGenerationIsAnError) {
  test::WriteText(scratch_.path() / "generations.jsonl",
                  Line(Answer(0, "x")) + Line(Answer(0, "y")));
  EXPECT_EQ(RunAndFail(MakeJob(0, 1)).kind(), ErrorKind::kInfrastructure);
}

// Two bytes of text may become a hundred bytes in memory.
TEST_F(JobTest, LinesOfRunsAreBounded) {
  const auto path = scratch_.path() / "scores.jsonl";
  const auto score = [](size_t values) {
    std::string list = "[]";
    for (size_t i = 1; i < values; ++i) list += ",[]";
    return R"({"doc_id":0,"filters":[{"filter":"none","filtered":["x"],"metrics":{"zz":[)" + list +
           "]}}]}\n";
  };
  test::WriteText(path, score(1000));
  EXPECT_NO_THROW(ScoreReader(path).Read(0));
  test::WriteText(path, score(kRunLineLimits.values + 1));
  EXPECT_THROW(ScoreReader(path).Read(0), Error);
  test::WriteText(path, Line(Answer(0, std::string(kRunLineLimits.bytes, 'x'))));
  EXPECT_THROW(GenerationReader{path}, Error);
}

// Some filters need all answers to a document, so there is a bound on them.
TEST_F(JobTest, ADocumentWithTooLongAnswersIsRefused) {
  TaskDefinition task = test::AnswerTask();
  task.repeats = 9;
  test::PrepareAnswers(task, 1, scratch_.path() / "long");
  std::string lines;
  for (int repeat = 0; repeat < task.repeats; ++repeat)
    lines += Line(Answer(0, std::string(15 << 20, 'x'), repeat));
  test::WriteText(scratch_.path() / "generations.jsonl", lines);
  protocol::Job job = MakeJob(0, 1);
  job.prepared = scratch_.path() / "long";
  const Error error = RunAndFail(job);
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), HasSubstr("task 'sums', document 0: its answers take"));
}

TEST_F(JobTest, ADocumentWhoseFiltersLeaveTooMuchIsRefused) {
  TaskDefinition task = test::AnswerTask();
  task.filters.assign(6, {"", {{"lowercase", Json::object()}, {"take_first", Json::object()}}});
  for (size_t i = 0; i < 6; ++i) task.filters[i].name = "f" + std::to_string(i);
  test::PrepareAnswers(task, 1, scratch_.path() / "long");
  test::WriteText(scratch_.path() / "generations.jsonl",
                  Line(Answer(0, std::string(12 << 20, 'x'))));
  protocol::Job job = MakeJob(0, 1);
  job.prepared = scratch_.path() / "long";
  const Error error = RunAndFail(job);
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), HasSubstr("what the filters leave takes more than 64"));
}

// Repeats of one document: an agent's file of generations is read answer by answer.
TEST_F(JobTest, AnswersAreReadOneByOne) {
  const auto path = scratch_.path() / "long.jsonl";
  {
    std::string lines;
    for (int i = 63; i >= 0; --i)
      lines += Line(Answer(0, std::to_string(i) + std::string(1 << 20, 'x'), i));
    test::WriteText(path, lines);
  }
  const GenerationReader reader(path);
  const LittleMemory memory(16 << 20);
  int expected = 0;
  reader.ForEach(0, 1, 64, [&](const Generation& generation) {
    EXPECT_EQ(generation.repeat, expected);
    EXPECT_TRUE(generation.text.starts_with(std::to_string(expected++) + "x"));
  });
  EXPECT_EQ(expected, 64);
}

TEST_F(JobTest, NumbersOfALongScoreAreReadAlone) {
  const auto path = scratch_.path() / "scores.jsonl";
  {
    ScoredDocument score;
    score.doc_id = 3;
    for (const char* filter : {"a", "b"}) {
      const Json filtered =
          Json::array({std::vector<std::string>(20, std::string(1 << 20, *filter))});
      score.filters.push_back({filter, filtered, {{"exact_match", 0.5}}, {{"no text", 2}}});
    }
    score.detail = {{"a", std::string(1 << 20, 'd')}};
    test::WriteText(path, ToLine(ToJson(score)) + "\n");
  }
  const ScoreReader reader(path);
  const LittleMemory memory(8 << 20);
  const ScoredDocument numbers = reader.ReadNumbers(3);
  ASSERT_EQ(numbers.filters.size(), 2u);
  EXPECT_EQ(numbers.doc_id, 3);
  EXPECT_EQ(numbers.filters[1].filter, "b");
  EXPECT_EQ(numbers.filters[1].metrics["exact_match"], 0.5);
  EXPECT_EQ(numbers.filters[1].fallbacks.at("no text"), 2);
  EXPECT_TRUE(numbers.filters[1].filtered.is_null());
  EXPECT_TRUE(numbers.detail.is_null());
  EXPECT_TRUE(reader.Filtered(3, "b").starts_with("[[\"bbb"));
  EXPECT_TRUE(reader.Filtered(3, "b").ends_with("bbb\"]]"));
  EXPECT_THROW(reader.Filtered(3, "c"), Error);
  EXPECT_THROW(reader.ReadNumbers(4), Error);
}

TEST_F(JobTest, ABrokenLine17IsNamed) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += i == 16 ? "{\"doc_id\": 16, \"te\n" : Line(Answer(i, "x"));
  test::WriteText(scratch_.path() / "generations.jsonl", lines);
  EXPECT_THAT(RunAndFail(MakeJob(0, 20)).what(), HasSubstr("generations.jsonl:17: not JSON"));
}

TEST_F(JobTest, RefusesASliceOutsideTheTask) {
  EXPECT_EQ(RunAndFail(MakeJob(5, 21)).kind(), ErrorKind::kInput);
  EXPECT_EQ(RunAndFail(MakeJob(5, 5)).kind(), ErrorKind::kInput);
  protocol::Job job = MakeJob(0, 1);
  job.prepared = scratch_.path() / "absent";
  EXPECT_EQ(RunAndFail(job).kind(), ErrorKind::kInfrastructure)
      << "the run's own files are no fault of the task";
}

TEST_F(JobTest, StopsWithNothingCommitted) {
  stop_ = true;
  protocol::JobDone done;
  EXPECT_FALSE(RunJob(MakeJob(0, 20), [] { return nullptr; }, nullptr, stop_, &count_, &done));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "scores.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "scores.jsonl.part"));
}

// The agent's end of a metric process that runs in a thread.
class ProcessTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    agent_.emplace(UniqueFd(ends[0]));
    MetricProcessOptions options;
    options.id = "m0";
    options.sandbox.python = "/nonexistent/python3";
    process_ = std::thread([this, fd = ends[1], options] {
      protocol::Channel channel{UniqueFd(fd)};
      status_ = RunMetricProcessOn(&channel, options);
    });
  }
  void TearDown() override {
    if (process_.joinable()) {
      agent_->Shutdown();
      process_.join();
    }
  }

  // The next message of type T; others are passed over.
  template <typename T>
  T Await() {
    for (int i = 0; i < 100; ++i) {
      const auto message = agent_->Receive(std::chrono::seconds(1));
      if (message && std::holds_alternative<T>(*message)) return std::get<T>(*message);
    }
    ADD_FAILURE() << "no such message";
    return T{};
  }

  std::optional<protocol::Channel> agent_;
  std::thread process_;
  int status_ = -1;
};

TEST_F(ProcessTest, ServesJobsAndDrains) {
  const auto hello = agent_->Receive(std::chrono::seconds(100));
  ASSERT_TRUE(hello && std::holds_alternative<protocol::Hello>(*hello)) << "hello comes first";
  EXPECT_EQ(std::get<protocol::Hello>(*hello).role, "metric");
  EXPECT_TRUE(std::get<protocol::Hello>(*hello).engine["isolation"].is_null());
  EXPECT_EQ(Await<protocol::Want>().count, 1);
  agent_->Send(MakeJob(0, 20));
  EXPECT_EQ(Await<protocol::Span>().name, "score");
  const auto done = Await<protocol::JobDone>();
  EXPECT_EQ(done.job, 7);
  EXPECT_EQ(HashHex(ReadFile(done.file)), done.hash);
  Await<protocol::Want>();
  protocol::Job bad = MakeJob(0, 20);
  bad.generations = scratch_.path() / "absent.jsonl";
  std::filesystem::remove(done.file);
  agent_->Send(MakeJob(0, 20));  // a job that comes twice is done once
  bad.attempt = 1;
  agent_->Send(bad);
  const auto failed = Await<protocol::JobFailed>();
  EXPECT_TRUE(failed.retry);
  EXPECT_THAT(failed.message, HasSubstr("absent.jsonl"));
  EXPECT_EQ(failed.attempt, 1);
  EXPECT_FALSE(std::filesystem::exists(done.file));
  EXPECT_EQ(Await<protocol::Progress>().trial, -1);
  agent_->Send(protocol::Drain{});
  process_.join();
  EXPECT_EQ(status_, 0);
}

TEST_F(ProcessTest, WithoutASandboxOnlyCodeFails) {
  test::PrepareAnswers(test::CodeTask(), 20, scratch_.path() / "code");
  protocol::Job job = MakeJob(0, 20);
  job.prepared = scratch_.path() / "code";
  agent_->Send(job);
  const auto failed = Await<protocol::JobFailed>();
  EXPECT_TRUE(failed.retry);
  job = MakeJob(0, 20);
  job.attempt = 1;
  agent_->Send(job);
  Await<protocol::JobDone>();
}

TEST_F(ProcessTest, AJobThatTakesTooMuchMemoryIsAnErrorOfTheTask) {
  if (!LimitsOwnMemory()) GTEST_SKIP() << "sanitizers bound no memory";
  Await<protocol::Want>();
  TaskDefinition task = test::AnswerTask();
  task.repeats = 8;
  test::PrepareAnswers(task, 1, scratch_.path() / "long");
  {
    std::string lines;
    for (int i = 0; i < task.repeats; ++i) lines += Line(Answer(0, std::string(8 << 20, 'x'), i));
    test::WriteText(scratch_.path() / "generations.jsonl", lines);
  }
  protocol::Job job = MakeJob(0, 1);
  job.prepared = scratch_.path() / "long";
  protocol::JobFailed failed;
  {
    const LittleMemory memory(48 << 20);
    agent_->Send(job);
    failed = Await<protocol::JobFailed>();
  }
  EXPECT_FALSE(failed.retry);
  EXPECT_THAT(failed.message,
              HasSubstr("task 'sums', documents 0 to 0: scoring takes more memory"));
  EXPECT_THAT(failed.message, HasSubstr("fewer repeats"));
}

TEST_F(ProcessTest, EndsWhenTheAgentIsGone) {
  Await<protocol::Want>();
  agent_.reset();
  process_.join();
  EXPECT_EQ(status_, 3);
}

TEST_F(ProcessTest, EndsOnStop) {
  Await<protocol::Want>();
  agent_->Send(protocol::Stop{});
  process_.join();
  EXPECT_EQ(status_, 0);
}

TEST(SandboxOptions, AreReadStrictly) {
  const SandboxOptions options =
      SandboxOptionsFromJson({{"cpu_seconds", 1.5}, {"processes", 4}}, "--sandbox");
  EXPECT_EQ(options.cpu_seconds, 1.5);
  EXPECT_EQ(options.processes, 4);
  EXPECT_EQ(ToJson(SandboxOptionsFromJson(ToJson(options), "x")), ToJson(options));
  const auto refusal = [](const Json& json) -> std::string {
    return CaughtText([&] { SandboxOptionsFromJson(json, "--sandbox"); }, ErrorKind::kUsage);
  };
  EXPECT_THAT(refusal({{"cpu_second", 1}}), HasSubstr("did you mean 'cpu_seconds'"));
  EXPECT_THAT(refusal({{"cpu_seconds", "1"}}), HasSubstr("a number"));
  EXPECT_THAT(refusal({{"cpu_seconds", 0}}), HasSubstr("more than 0"));
  EXPECT_THAT(refusal({{"python", "python3"}}), HasSubstr("absolute path"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("object"));
}

}  // namespace
}  // namespace evald

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"
#include "tests/unit/worker/support.h"
#include "worker/emulated/emulated_engine.h"

namespace evald {
namespace {

using testing::HasSubstr;

std::unique_ptr<Engine> Make(const Json& settings, uint64_t seed = 1) {
  return MakeEmulatedEngine({"emulated", settings, "cpu:0", 1, seed});
}

// An environment variable that is set as long as this object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

Request Question(int64_t doc_id, RequestKind kind = RequestKind::kGenerateUntil) {
  Request request;
  request.task = "t";
  request.doc_id = doc_id;
  request.kind = kind;
  request.context = "What is it?";
  return request;
}

// Submits `count` requests at once. Returns their lines by document.
std::map<int64_t, std::string> Answers(Engine* engine, int64_t count, RequestKind kind) {
  for (int64_t i = 0; i < count; ++i) engine->Submit(static_cast<uint64_t>(i), Question(i, kind));
  std::map<int64_t, std::string> lines;
  while (engine->pending() > 0) {
    for (const Finished& one : engine->Step(std::chrono::milliseconds(50))) {
      EXPECT_EQ(static_cast<int64_t>(one.tag), one.generation.doc_id);
      lines[one.generation.doc_id] = ToLine(ToJson(one.generation));
    }
  }
  return lines;
}

TEST(EmulatedEngine, AnswersDependOnSeedAndRequestAlone) {
  for (const RequestKind kind : {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                                 RequestKind::kLoglikelihoodRolling}) {
    const auto one = Answers(Make(Json{{"concurrency", 1}}).get(), 20, kind);
    const auto other =
        Answers(Make(Json{{"concurrency", 7}, {"delay_ms", 2}, {"jitter", 1}}).get(), 20, kind);
    EXPECT_EQ(one, other);
    EXPECT_NE(one, Answers(Make(Json::object(), 2).get(), 20, kind));
    EXPECT_NE(one.at(0).substr(12), one.at(1).substr(12));
  }
}

TEST(EmulatedEngine, TakesTheModelledTime) {
  const auto engine = Make(Json{{"concurrency", 2},
                                {"delay_ms", 10},
                                {"tokens_per_second", 1000},
                                {"tokens_out", 20},
                                {"clock_scale", 0.5}});
  const int64_t begin = MonotonicMicros();
  Answers(engine.get(), 6, RequestKind::kGenerateUntil);
  const double seconds = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  EXPECT_GE(seconds, 3 * 0.030 * 0.5 - 1e-6);  // 6 requests, 2 at a time
  EXPECT_LT(seconds, 60) << "not in the order of what is modelled, however busy the machine is";
}

TEST(EmulatedEngine, TimesOfDocumentsComeFromAFile) {
  TemporaryFolder folder;
  const std::vector<float> seconds = {0.5, 0, 0.25};
  std::ofstream(folder.path() / "sums.f32", std::ios::binary)
      .write(reinterpret_cast<const char*>(seconds.data()),
             static_cast<std::streamsize>(seconds.size() * sizeof(float)));
  const Variable times("EVALD_EMULATED_TIMES", folder.path().string());
  const auto engine = Make(Json{{"concurrency", 3}, {"clock_scale", 0.2}});
  const int64_t begin = MonotonicMicros();
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 3; ++i) {
    Request request = Question(i, RequestKind::kGenerateUntil);
    request.task = "sums";
    engine->Submit(static_cast<uint64_t>(i), request);
  }
  while (engine->pending() > 0) {
    for (const Finished& one : engine->Step(std::chrono::milliseconds(50)))
      order.push_back(one.generation.doc_id);
  }
  EXPECT_EQ(order, (std::vector<int64_t>{1, 2, 0}));
  EXPECT_GE(MonotonicMicros() - begin, 100'000);
  Request beyond = Question(3, RequestKind::kGenerateUntil);
  beyond.task = "sums";
  EXPECT_THROW(engine->Submit(9, beyond), Error);
}

TEST(EmulatedEngine, StepReturnsWithinItsBudget) {
  const auto engine = Make(Json{{"delay_ms", 5000}});
  engine->Submit(1, Question(1));
  const int64_t begin = MonotonicMicros();
  EXPECT_TRUE(engine->Step(std::chrono::milliseconds(20)).empty());
  EXPECT_LT(MonotonicMicros() - begin, 1'000'000);
  EXPECT_EQ(engine->pending(), 1u);
  engine->CancelAll();
  EXPECT_EQ(engine->pending(), 0u);
  EXPECT_TRUE(engine->Step(std::chrono::milliseconds(20)).empty());
}

TEST(EmulatedEngine, TheTemplateAndTheRangeOfTokens) {
  const auto engine =
      Make(Json{{"text", "{task}/{doc_id}.{idx}.{repeat}/{doc_id}"}, {"tokens_out", {3, 5}}});
  const auto lines = Answers(engine.get(), 30, RequestKind::kGenerateUntil);
  EXPECT_THAT(lines.at(7), HasSubstr("\"text\":\"t/7.0.0/7\""));
  for (const auto& [doc, line] : lines) {
    const int tokens = ParseJson(line, "x")["tokens_out"];
    EXPECT_GE(tokens, 3);
    EXPECT_LE(tokens, 5);
  }
}

TEST(EmulatedEngine, FailuresLeaveNothingPending) {
  const auto engine = Make(Json{{"fail_rate", 1}});
  engine->Submit(1, Question(1));
  EXPECT_THROW(engine->Step(std::chrono::milliseconds(20)), Error);
  EXPECT_EQ(engine->pending(), 0u);
}

TEST(EmulatedEngine, TellsEachAnswerWhereTheEnvironmentSays) {
  TemporaryFolder folder;
  const std::filesystem::path journal = folder.path() / "journal";
  const Variable variable("EVALD_EMULATED_JOURNAL", journal.string());
  const auto engine = Make(Json::object());
  engine->Submit(1, Question(7));
  while (engine->pending() > 0) engine->Step(std::chrono::milliseconds(20));
  EXPECT_EQ(ReadFile(journal), "t 7 0 0\n");
}

TEST(EmulatedEngine, WrongSettingsAreNamed) {
  const std::pair<Json, const char*> cases[] = {
      {Json{{"delays", 1}}, "key 'delays': unknown key"},
      {Json{{"journal", "/tmp/evald-no-journal"}}, "key 'journal': unknown key"},
      {Json{{"times", "/tmp"}}, "key 'times': unknown key"},
      {Json{{"delay_ms", -1}}, "key 'delay_ms': found -1"},
      {Json{{"delay_ms", "1"}}, "'delay_ms'"},
      {Json{{"jitter", 2}}, "from 0 to 1"},
      {Json{{"tokens_out", {5, 3}}}, "[least, most]"},
      {Json{{"tokens_out", "many"}}, "'tokens_out'"},
      {Json{{"concurrency", 0}}, "at least 1"},
      {Json::array(), "expected an object"},
  };
  for (const auto& [settings, message] : cases) {
    const Error e = Caught([&] { Make(settings); });
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.what(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace evald

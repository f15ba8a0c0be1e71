// The trial loop without a socket: messages are posted and collected. Engines are real, or fail by
// a script.
#include "worker/trial_loop.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <thread>

#include "base/hash.h"
#include "support.h"
#include "tests/unit/support/temporary_folder.h"
#include "worker/emulated/emulated_engine.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The emulated engine, with answers or failures that the test chooses.
class ScriptedEngine : public Engine {
 public:
  explicit ScriptedEngine(Json settings = Json{{"concurrency", 4}})
      : inner_(MakeEmulatedEngine({"emulated", std::move(settings), "cpu:0", 1, 1})) {}

  EngineInfo Info() const override { return inner_->Info(); }
  void Load(const fs::path& directory) override {
    ++loads;
    if (on_load) on_load();
    inner_->Load(directory);
  }
  void Follow(const fs::path& staging) override {
    followed.push_back({staging, pending(), loads});
    if (on_follow) on_follow();
  }
  void Submit(uint64_t tag, Request request) override {
    submitted.push_back({request.doc_id, request.idx, request.repeat});
    if (on_submit) on_submit(request);
    inner_->Submit(tag, std::move(request));
  }
  std::vector<Finished> Step(std::chrono::milliseconds budget) override {
    steps.push_back({inner_->pending(), submitted.size()});
    if (on_step) on_step();
    std::vector<Finished> finished = inner_->Step(budget);
    for (Finished& one : finished) {
      if (on_answer) on_answer(&one);
      if (!on_finished) continue;
      try {
        on_finished(&one.generation);
      } catch (...) {
        inner_->CancelAll();
        throw;
      }
    }
    return finished;
  }
  size_t pending() const override { return inner_->pending(); }
  void CancelAll() override { inner_->CancelAll(); }
  Json LoadReport() const override { return report ? *report : inner_->LoadReport(); }
  LoadProgress Loading() const override { return loading; }
  std::optional<std::string> Broken() const override { return broken; }

  LoadProgress loading;
  std::optional<std::string> broken;
  std::function<void()> on_load;
  std::function<void()> on_follow;
  std::function<void(const Request&)> on_submit;
  std::function<void()> on_step;
  std::function<void(Generation*)> on_finished;
  std::function<void(Finished*)> on_answer;
  std::vector<RequestKey> submitted;
  struct AtStep {
    size_t pending = 0, submitted = 0;
  };
  std::vector<AtStep> steps;  // the engine's requests at the beginning of each step
  struct Followed {
    fs::path staging;
    size_t pending = 0;
    int loads = 0;  // number of loads before the step
  };
  std::vector<Followed> followed;
  std::optional<Json> report;  // the report of Load, instead of the emulated engine's
  int loads = 0;

 private:
  std::unique_ptr<Engine> inner_;
};

class TrialLoopTest : public testing::Test {
 protected:
  protocol::Slice MakeSlice(const std::string& task, int64_t first, int64_t end,
                            const std::string& file) {
    return {task, folder_.path() / ("prepared-" + task), "", first, end, folder_.path() / file, {}};
  }
  void Prepare(const test::PreparedShape& shape) { test::MakePrepared(folder_.path(), shape); }

  // Runs the loop over these messages and then Drain.
  void Run(Engine* engine, std::vector<protocol::Message> messages, bool drain = true) {
    TrialLoop loop(engine, [this](const protocol::Message& message) {
      const std::lock_guard lock(mutex_);
      sent_.push_back(message);
    });
    loop_ = &loop;
    std::string loaded;
    for (protocol::Message& message : messages) {
      if (const auto* load = std::get_if<protocol::Load>(&message)) loaded = load->fingerprint;
      auto* lease = std::get_if<protocol::Lease>(&message);
      if (lease != nullptr && lease->fingerprint.empty()) lease->fingerprint = loaded;
      loop.Post(std::move(message));
    }
    if (drain) loop.Post(protocol::Drain{});
    loop.Run();
  }
  protocol::Load MakeLoad() { return {folder_.path(), "f00d"}; }

  template <typename T>
  std::vector<T> Sent() const {
    std::vector<T> found;
    for (const protocol::Message& message : sent_) {
      if (const T* one = std::get_if<T>(&message)) found.push_back(*one);
    }
    return found;
  }

  TrialLoop* loop_ = nullptr;  // set during Run
  TemporaryFolder folder_;
  std::mutex mutex_;
  std::vector<protocol::Message> sent_;
};

TEST_F(TrialLoopTest, EachRequestAndRepeatIsThereOnceInOrder) {
  Prepare({"math", 7, 2, RequestKind::kGenerateUntil, 3});
  ScriptedEngine engine(Json{{"concurrency", 5}, {"delay_ms", 2}, {"jitter", 1}});
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 2, 7, "1.0.jsonl")}}});
  const auto lines = test::ReadGenerations(folder_.path() / "1.0.jsonl");
  ASSERT_EQ(lines.size(), 5u * 2 * 3);
  size_t at = 0;
  for (int64_t doc = 2; doc < 7; ++doc) {
    for (int idx = 0; idx < 2; ++idx) {
      for (int repeat = 0; repeat < 3; ++repeat, ++at) {
        EXPECT_EQ(lines[at].doc_id, doc);
        EXPECT_EQ(lines[at].idx, idx);
        EXPECT_EQ(lines[at].repeat, repeat);
      }
    }
  }
  const auto done = Sent<protocol::SliceDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].requests, 30);
  EXPECT_EQ(done[0].hash, HashHex(ReadFile(folder_.path() / "1.0.jsonl")));
  ASSERT_EQ(Sent<protocol::TrialDone>().size(), 1u);
  EXPECT_GT(Sent<protocol::TrialDone>()[0].device_seconds, 0.005);
  EXPECT_TRUE(Sent<protocol::TrialFailed>().empty());
}

TEST_F(TrialLoopTest, FollowsAfterWhatItHoldsAndAnswersNoMoreThen) {
  Prepare({"math", 6});
  ScriptedEngine engine(Json{{"concurrency", 2}, {"delay_ms", 2}});
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 6, "1.0.jsonl")}},
                protocol::Follow{"/staging"},
                protocol::Lease{2, 0, {MakeSlice("math", 0, 6, "2.0.jsonl")}}});
  ASSERT_EQ(engine.followed.size(), 1u);
  EXPECT_EQ(engine.followed[0].staging, "/staging");
  EXPECT_EQ(engine.followed[0].pending, 0u);
  EXPECT_EQ(engine.followed[0].loads, 1);
  const auto done = Sent<protocol::TrialDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].trial, 1);
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].trial, 2);
  EXPECT_TRUE(failed[0].retry);
}

TEST_F(TrialLoopTest, ThePullBeginsWithAFollowThatWasOfUse) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1000}}) {
    sent_.clear();
    ScriptedEngine engine;
    engine.report = Json{{"followed", bytes}};
    TrialLoop* running = nullptr;
    TrialLoop loop(&engine, [&](const protocol::Message& message) {
      if (std::holds_alternative<protocol::Loaded>(message)) running->Post(protocol::Drain{});
      const std::lock_guard lock(mutex_);
      sent_.push_back(message);
    });
    running = &loop;
    std::promise<void> following;
    engine.on_follow = [&] { following.set_value(); };
    loop.Post(protocol::Follow{"/staging"});
    std::thread later([&] {
      following.get_future().wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      loop.Post(MakeLoad());
    });
    loop.Run();
    later.join();
    int64_t pull = -1, idle = 0, last = 0;
    for (const protocol::Span& span : Sent<protocol::Span>()) {
      EXPECT_GE(span.begin, last) << "spans follow one another";
      last = span.end;
      (span.name == "pull" ? pull : idle) = span.end - span.begin;
    }
    if (bytes > 0) {
      EXPECT_GE(pull, 140'000);
      EXPECT_EQ(idle, 0);
    } else {
      EXPECT_GE(pull, 0);
      EXPECT_GE(idle, 140'000) << "what it waited for is not the pull's";
    }
  }
}

TEST_F(TrialLoopTest, SliceDoneSaysWhatItTook) {
  Prepare({"math", 10});
  ScriptedEngine engine(Json{{"concurrency", 2}, {"delay_ms", 20}});
  Run(&engine,
      {MakeLoad(),
       protocol::Lease{1, 0, {MakeSlice("math", 0, 4, "a"), MakeSlice("math", 4, 10, "b")}}});
  const auto done = Sent<protocol::SliceDone>();
  ASSERT_EQ(done.size(), 2u);
  double sum = 0;
  for (const auto& slice : done) {
    EXPECT_GE(slice.longest_seconds, 0.019);
    EXPECT_GT(slice.device_seconds, 0.019);
    sum += slice.device_seconds;
  }
  EXPECT_NEAR(sum, Sent<protocol::TrialDone>().at(0).device_seconds, 1e-9);
}

TEST_F(TrialLoopTest, ALateRequestIsToldBeforeItEnds) {
  Prepare({"math", 3});
  ScriptedEngine engine(Json{{"concurrency", 1}, {"delay_ms", 60}});
  std::vector<protocol::Progress> seen;
  engine.on_finished = [&](Generation*) {
    for (const auto& progress : loop_->Snapshot()) seen.push_back(progress);
  };
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 3, "a")}}});
  double longest = 0;
  for (const auto& progress : seen) {
    if (progress.oldest_task == "math") longest = std::max(longest, progress.oldest_seconds);
  }
  EXPECT_GE(longest, 0.04) << "the engine has been silent for the last part of it";
}

TEST_F(TrialLoopTest, AShortenedSliceEndsBehindWhatWasBegun) {
  Prepare({"math", 40});
  ScriptedEngine engine(Json{{"concurrency", 2}, {"delay_ms", 2}});
  engine.on_finished = [&](Generation* generation) {
    if (generation->doc_id == 5) loop_->Post(protocol::Shorten{1, 0, "math", 0, 2});
  };
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 40, "1.0.jsonl")}}});
  const auto shortened = Sent<protocol::Shortened>();
  ASSERT_EQ(shortened.size(), 1u);
  EXPECT_GE(shortened[0].end, 6);
  EXPECT_LT(shortened[0].end, 40);
  const auto done = Sent<protocol::SliceDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].end, shortened[0].end);
  EXPECT_EQ(done[0].requests, shortened[0].end);
  EXPECT_EQ(engine.submitted.size(), static_cast<size_t>(shortened[0].end))
      << "nothing behind it is computed";
  EXPECT_EQ(test::ReadGenerations(folder_.path() / "1.0.jsonl").size(), engine.submitted.size());
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 1u);
}

TEST_F(TrialLoopTest, ALeaseThatWaitsIsShortenedToo) {
  Prepare({"math", 40});
  ScriptedEngine engine;
  Run(&engine,
      {MakeLoad(),
       protocol::Lease{1, 0, {MakeSlice("math", 0, 20, "a"), MakeSlice("math", 20, 40, "b")}},
       protocol::Shorten{1, 0, "math", 20, 24}, protocol::Shorten{1, 0, "math", 0, 0},
       protocol::Shorten{1, 1, "math", 0, 3}, protocol::Shorten{1, 0, "math", 3, 5}});
  const auto shortened = Sent<protocol::Shortened>();
  ASSERT_EQ(shortened.size(), 2u) << "another attempt's, or a slice that is none, gets no answer";
  EXPECT_EQ(shortened[0].end, 24);
  EXPECT_EQ(shortened[1].end, 1) << "a slice is never empty";
  EXPECT_EQ(engine.submitted.size(), 5u);
}

TEST_F(TrialLoopTest, TheEngineStaysFullAcrossTrials) {
  Prepare({"math", 40});
  ScriptedEngine engine(Json{{"concurrency", 8}, {"delay_ms", 20}});
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 12, "1.0.jsonl")}},
                protocol::Lease{2, 0, {MakeSlice("math", 12, 24, "2.0.jsonl")}},
                protocol::Lease{3, 0, {MakeSlice("math", 24, 40, "3.0.jsonl")}}});
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 3u);
  ASSERT_FALSE(engine.steps.empty());
  for (const auto& [pending, submitted] : engine.steps) {
    if (submitted < 40) {
      EXPECT_EQ(pending, 8u) << "after " << submitted << " requests";
    }
    EXPECT_LE(pending, 8u);
  }
}

TEST_F(TrialLoopTest, AsksAgainWhileThereIsStillWork) {
  Prepare({"math", 64});
  ScriptedEngine engine(Json{{"concurrency", 4}, {"delay_ms", 5}});
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 64, "1.0.jsonl")}}}, true);
  EXPECT_TRUE(Sent<protocol::Want>().empty());  // it drains: it accepts nothing new
  sent_.clear();
  ScriptedEngine again(Json{{"concurrency", 4}, {"delay_ms", 5}});
  TrialLoop loop(&again, [this](const protocol::Message& message) {
    const std::lock_guard lock(mutex_);
    sent_.push_back(message);
  });
  loop.Post(MakeLoad());
  loop.Post(protocol::Lease{2, 0, {MakeSlice("math", 0, 64, "2.0.jsonl")}, "f00d"});
  std::thread thread([&] { loop.Run(); });
  while (true) {
    const std::lock_guard lock(mutex_);
    if (!Sent<protocol::TrialDone>().empty()) break;
  }
  loop.Post(protocol::Stop{});
  thread.join();
  size_t want = 0, done = 0;
  for (size_t i = 0; i < sent_.size(); ++i) {
    if (std::holds_alternative<protocol::Want>(sent_[i])) want = i;
    if (std::holds_alternative<protocol::SliceDone>(sent_[i])) done = i;
  }
  EXPECT_EQ(Sent<protocol::Want>().size(), 1u);
  EXPECT_LT(want, done);
}

TEST_F(TrialLoopTest, ABadRequestFailsItsTrialOnlyThoughSeveralWereUnderWay) {
  Prepare({"good", 6});
  Prepare({"bad", 6});
  ScriptedEngine engine(Json{{"concurrency", 16}, {"delay_ms", 1}});
  int64_t failures = 0;
  engine.on_finished = [&](Generation* generation) {
    if (generation->text == "bad 3") {
      ++failures;
      throw Error(ErrorKind::kInput, "document 3 is too long");
    }
  };
  ScriptedEngine texts(Json{{"concurrency", 16}, {"delay_ms", 1}, {"text", "{task} {doc_id}"}});
  texts.on_finished = engine.on_finished;
  Run(&texts, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("good", 0, 3, "1.0.jsonl")}},
               protocol::Lease{2, 0, {MakeSlice("bad", 0, 6, "2.0.jsonl")}},
               protocol::Lease{3, 4, {MakeSlice("good", 3, 6, "3.4.jsonl")}}});
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].trial, 2);
  EXPECT_FALSE(failed[0].retry);
  EXPECT_THAT(failed[0].message, HasSubstr("document 3 is too long"));
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 2u);
  EXPECT_EQ(failures, 2);  // once with others, once alone
  EXPECT_EQ(test::ReadGenerations(folder_.path() / "1.0.jsonl").size(), 3u);
  EXPECT_EQ(test::ReadGenerations(folder_.path() / "3.4.jsonl").size(), 3u);
}

TEST_F(TrialLoopTest, AnInfrastructureFailureMayBeTriedAgainAndTheWorkerGoesOn) {
  Prepare({"math", 6});
  ScriptedEngine engine(Json{{"concurrency", 16}});
  int left = 1;
  engine.on_finished = [&](Generation*) {
    if (left-- == 1) throw Error(ErrorKind::kInfrastructure, "the device is lost");
  };
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 6, "1.0.jsonl")}}});
  ASSERT_EQ(Sent<protocol::TrialFailed>().size(), 1u);
  EXPECT_TRUE(Sent<protocol::TrialFailed>()[0].retry);
  sent_.clear();
  Run(&engine, {MakeLoad(), protocol::Lease{1, 1, {MakeSlice("math", 0, 6, "1.1.jsonl")}}});
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 1u);
}

TEST_F(TrialLoopTest, ABrokenDeviceEndsTheWorkerWhichKeepsWhatIsWholeAndSaysWhyLast) {
  Prepare({"whole", 3});
  Prepare({"half", 8});
  ScriptedEngine engine(Json{{"concurrency", 1}});
  int answers = 0;
  engine.on_finished = [&](Generation*) {
    if (++answers < 6) return;
    engine.broken = "cuda:GPU-a: a kernel failed";
    throw Error(ErrorKind::kInfrastructure, *engine.broken);
  };
  // No message tells the loop to end.
  Run(&engine,
      {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("whole", 0, 3, "1.0.jsonl")}},
       protocol::Lease{2, 0, {MakeSlice("half", 0, 8, "2.0.jsonl")}}},
      false);
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 1u);
  EXPECT_EQ(test::ReadGenerations(folder_.path() / "1.0.jsonl").size(), 3u);
  EXPECT_EQ(test::ReadGenerations(folder_.path() / "2.0.jsonl.part").size(), 2u);
  const auto* last = std::get_if<protocol::TrialFailed>(&sent_.back());
  ASSERT_NE(last, nullptr) << "the last word";
  EXPECT_EQ(last->trial, -1);
  EXPECT_TRUE(last->retry);
  EXPECT_EQ(last->message, "cuda:GPU-a: a kernel failed");
  EXPECT_EQ(Sent<protocol::TrialFailed>().size(), 1u);
}

TEST_F(TrialLoopTest, ADeviceThatBreaksWhileLoadingEndsTheWorkerToo) {
  ScriptedEngine engine;
  engine.on_load = [&] {
    engine.broken = "cuda:GPU-a is lost";
    throw Error(ErrorKind::kInfrastructure, *engine.broken);
  };
  Run(&engine, {MakeLoad()}, false);
  ASSERT_EQ(Sent<protocol::TrialFailed>().size(), 1u);
  EXPECT_EQ(Sent<protocol::TrialFailed>()[0].trial, -1);
  EXPECT_TRUE(Sent<protocol::TrialFailed>()[0].retry);
  EXPECT_TRUE(Sent<protocol::Loaded>().empty());
}

TEST_F(TrialLoopTest, TellsHowFarAPullIs) {
  ScriptedEngine engine;
  std::vector<protocol::Progress> seen;
  engine.on_load = [&] {
    engine.loading = {3, 7};
    seen = loop_->Snapshot();
  };
  Prepare({"math", 1});
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 1, "1.0.jsonl")}}});
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].pulled, 3);
  EXPECT_EQ(seen[0].to_pull, 7);
}

// The failure names the task, so that the trial's other tasks are not blamed.
TEST_F(TrialLoopTest, ARequestThatTheEngineRefusesNamesItsTask) {
  Prepare({"first", 3});
  Prepare({"second", 3});
  ScriptedEngine engine;
  engine.on_submit = [](const Request& request) {
    if (request.task == "second")
      throw Error(ErrorKind::kInput, "document 0: max_gen_toks leaves nothing");
  };
  Run(&engine,
      {MakeLoad(),
       protocol::Lease{
           1, 0, {MakeSlice("first", 0, 3, "1.0.jsonl"), MakeSlice("second", 0, 3, "1.1.jsonl")}}});
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].task, "second");
  EXPECT_FALSE(failed[0].retry);
}

// The engine does not say whose request failed. So slices go through it one at a time until the
// loop knows.
TEST_F(TrialLoopTest, ARequestThatFailsInAStepIsTracedToItsTask) {
  Prepare({"first", 3});
  Prepare({"second", 3});
  ScriptedEngine engine(Json{{"concurrency", 6}});
  bool holds_second = false;
  engine.on_submit = [&](const Request& request) {
    holds_second = holds_second || request.task == "second";
  };
  engine.on_step = [&] {
    if (!std::exchange(holds_second, false)) return;
    engine.CancelAll();
    throw Error(ErrorKind::kInput, "status 400: too long");
  };
  Run(&engine,
      {MakeLoad(),
       protocol::Lease{
           1, 0, {MakeSlice("first", 0, 3, "1.0.jsonl"), MakeSlice("second", 0, 3, "1.1.jsonl")}}});
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].task, "second");
  EXPECT_FALSE(failed[0].retry);
}

// The engine says itself which request has no answer, and the others go on beside it.
TEST_F(TrialLoopTest, ARequestThatEndsWithoutAnAnswerFailsItsTrialAndNoOther) {
  Prepare({"first", 3});
  Prepare({"second", 6});
  ScriptedEngine engine(Json{{"concurrency", 9}});
  engine.on_answer = [](Finished* one) {
    if (one->generation.doc_id == 2 && one->tag <= 3)
      one->refused = Error(ErrorKind::kInput, "document 2: the logits are not finite");
  };
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("first", 0, 3, "1.jsonl")}},
                protocol::Lease{2, 0, {MakeSlice("second", 0, 6, "2.jsonl")}}});
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].trial, 1);
  EXPECT_EQ(failed[0].task, "first");
  EXPECT_FALSE(failed[0].retry);
  EXPECT_THAT(failed[0].message, HasSubstr("document 2"));
  const auto done = Sent<protocol::TrialDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].trial, 2);
  EXPECT_EQ(engine.submitted.size(), 9u) << "no request was computed again";
}

TEST_F(TrialLoopTest, ANanIsKeptAsItIs) {
  Prepare({"choice", 4, 4, RequestKind::kLoglikelihood});
  ScriptedEngine engine;
  engine.on_finished = [](Generation* generation) {
    if (generation->doc_id == 2) generation->loglikelihood = std::nan("");
  };
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("choice", 0, 4, "1.0.jsonl")}}});
  EXPECT_TRUE(Sent<protocol::TrialFailed>().empty());
  int undefined = 0;
  for (const Generation& generation : test::ReadGenerations(folder_.path() / "1.0.jsonl")) {
    if (!std::isnan(generation.loglikelihood)) continue;
    EXPECT_EQ(generation.doc_id, 2);
    ++undefined;
  }
  EXPECT_EQ(undefined, 4) << "one for each choice";
}

TEST_F(TrialLoopTest, InvalidUtf8IsReplaced) {
  Prepare({"math", 1});
  ScriptedEngine engine;
  engine.on_finished = [](Generation* generation) { generation->text = "a\xFF\xC3"; };
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 1, "1.0.jsonl")}}});
  EXPECT_EQ(test::ReadGenerations(folder_.path() / "1.0.jsonl")[0].text,
            "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_F(TrialLoopTest, LeasesThatMakeNoSenseAreRefused) {
  Prepare({"math", 6});
  ScriptedEngine engine;
  protocol::Slice absent = MakeSlice("math", 0, 6, "x.jsonl");
  absent.prepared = folder_.path() / "nowhere";
  protocol::Slice other = MakeSlice("math", 0, 6, "x.jsonl");
  other.task = "history";
  protocol::Slice unnamed = MakeSlice("math", 0, 6, "x.jsonl");
  unnamed.file = "";
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {}},
                protocol::Lease{2, 0, {MakeSlice("math", 0, 7, "x.jsonl")}},
                protocol::Lease{3, 0, {MakeSlice("math", 5, 5, "x.jsonl")}},
                protocol::Lease{4, 0, {MakeSlice("math", -1, 5, "x.jsonl")}},
                protocol::Lease{5, 0, {absent}}, protocol::Lease{6, 0, {other}},
                protocol::Lease{7, 0, {unnamed}}});
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 7u);
  for (const auto& one : failed) EXPECT_FALSE(one.retry) << one.message;
  EXPECT_THAT(failed[1].message, HasSubstr("documents [0, 7), the prepared task has 6"));
  EXPECT_THAT(failed[4].message, HasSubstr("nowhere"));
  EXPECT_THAT(failed[5].message, HasSubstr("holds the task 'math', the lease says 'history'"));
}

TEST_F(TrialLoopTest, AFailedLoadIsToldAndAnotherMayFollow) {
  Prepare({"math", 2});
  ScriptedEngine engine;
  engine.on_load = [&] {
    if (engine.loads == 1) throw Error(ErrorKind::kInput, "model.safetensors: no such tensor");
  };
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 2, "1.0.jsonl")}},
                MakeLoad(), protocol::Lease{2, 0, {MakeSlice("math", 0, 2, "2.0.jsonl")}}});
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].trial, -1);
  EXPECT_FALSE(failed[0].retry);
  EXPECT_THAT(failed[0].message, HasSubstr("no such tensor"));
  EXPECT_EQ(failed[1].trial, 1);  // a lease belongs to the checkpoint of the Load before it
  EXPECT_TRUE(failed[1].retry);
  EXPECT_THAT(failed[1].message, HasSubstr("no checkpoint loaded"));
  ASSERT_EQ(Sent<protocol::TrialDone>().size(), 1u);
  EXPECT_EQ(Sent<protocol::TrialDone>()[0].trial, 2);
}

TEST_F(TrialLoopTest, AnEngineThatNeedsNoCheckpointIsLoadedWithoutOne) {
  Prepare({"math", 2});
  ScriptedEngine engine;
  Run(&engine,
      {protocol::Load{"", ""}, protocol::Lease{1, 0, {MakeSlice("math", 0, 2, "1.0.jsonl")}}});
  EXPECT_EQ(Sent<protocol::Loaded>().size(), 1u);
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 1u);
}

TEST_F(TrialLoopTest, AStagedCheckpointThatIsGoneIsTold) {
  Prepare({"math", 2});
  ScriptedEngine engine;
  Run(&engine, {protocol::Load{folder_.path() / "dropped", "f00d"},
                protocol::Lease{1, 0, {MakeSlice("math", 0, 2, "1.0.jsonl")}}});
  const auto failed = Sent<protocol::TrialFailed>();
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].trial, -1);
  EXPECT_TRUE(failed[0].retry);
  EXPECT_THAT(failed[0].message, HasSubstr("dropped"));
  EXPECT_EQ(engine.loads, 0);
}

TEST_F(TrialLoopTest, AFullySalvagedSliceAsksTheEngineNothing) {
  Prepare({"math", 6});
  ScriptedEngine first;
  Run(&first, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 6, "1.0.jsonl")}}});
  ScriptedEngine second;
  protocol::Slice slice = MakeSlice("math", 0, 6, "1.1.jsonl");
  slice.salvage = {folder_.path() / "1.0.jsonl"};
  Run(&second, {MakeLoad(), protocol::Lease{1, 1, {slice}}});
  EXPECT_TRUE(second.submitted.empty());
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 2u);
  EXPECT_EQ(ReadFile(folder_.path() / "1.0.jsonl"), ReadFile(folder_.path() / "1.1.jsonl"));
}

TEST_F(TrialLoopTest, SpansFollowOneAnother) {
  Prepare({"math", 40});
  ScriptedEngine engine(Json{{"concurrency", 2}, {"delay_ms", 10}, {"load_seconds", 0.15}});
  Run(&engine, {MakeLoad(), protocol::Lease{1, 0, {MakeSlice("math", 0, 20, "1.0.jsonl")}},
                protocol::Lease{2, 0, {MakeSlice("math", 20, 40, "2.0.jsonl")}}});
  const auto spans = Sent<protocol::Span>();
  ASSERT_GE(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "pull");
  EXPECT_GE(spans[0].end - spans[0].begin, 150000);
  double computed = 0;
  for (size_t i = 1; i < spans.size(); ++i) {
    EXPECT_GE(spans[i].begin, spans[i - 1].end);
    if (spans[i].name == "generate") computed += spans[i].args["device_seconds"].get<double>();
  }
  EXPECT_GT(computed, 0.19);  // 40 requests of 10 ms, two at a time
}

// Two trials of one lease would write the same file.
TEST_F(TrialLoopTest, ALeaseThatComesTwiceIsWorkedOffOnce) {
  Prepare({"math", 6});
  ScriptedEngine engine;
  const protocol::Lease lease{1, 1, {MakeSlice("math", 0, 6, "1.1.jsonl")}};
  Run(&engine, {MakeLoad(), lease, lease,
                protocol::Lease{2, 1, {MakeSlice("math", 0, 2, "2.1.jsonl")}}, lease});
  EXPECT_EQ(engine.submitted.size(), 8u);
  EXPECT_EQ(Sent<protocol::TrialDone>().size(), 2u);
  EXPECT_TRUE(Sent<protocol::TrialFailed>().empty());
}

// Otherwise its answers would be taken for those of the intended checkpoint.
TEST_F(TrialLoopTest, ALeaseForAnotherCheckpointIsNotAnswered) {
  Prepare({"math", 6});
  ScriptedEngine engine;
  Run(&engine,
      {MakeLoad(), protocol::Lease{1, 1, {MakeSlice("math", 0, 6, "1.1.jsonl")}, "another"}});
  EXPECT_TRUE(engine.submitted.empty());
  ASSERT_EQ(Sent<protocol::TrialFailed>().size(), 1u);
  const protocol::TrialFailed failed = Sent<protocol::TrialFailed>()[0];
  EXPECT_EQ(failed.trial, -1) << "the worker as a whole is not what its agent thinks";
  EXPECT_TRUE(failed.retry);
  EXPECT_THAT(failed.message, HasSubstr("'another'"));
  EXPECT_THAT(failed.message, HasSubstr("'f00d'"));
}

}  // namespace
}  // namespace evald

// A whole evald-worker process. The test is its agent.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "evald/engine_info.h"
#include "support.h"
#include "worker/device_lock.h"

namespace evald::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class WorkerProcess : public testing::Test {
 protected:
  void Prepare(const PreparedShape& shape) { prepared_ = MakePrepared(folder_.path(), shape); }

  protocol::Lease MakeLease(int64_t trial, int attempt, int64_t first, int64_t end,
                            const std::vector<std::string>& salvage = {}) {
    return {trial,
            attempt,
            {{"task", prepared_, "", first, end, File(trial, attempt), salvage}},
            "f00d"};
  }
  std::string File(int64_t trial, int attempt) {
    return folder_.path() / fmt::format("{}.{}.jsonl", trial, attempt);
  }

  TemporaryFolder folder_;
  std::string prepared_;
};

TEST_F(WorkerProcess, SaysWhatItIsAndWorksUntilItIsDrained) {
  Prepare({"task", 30, 2, RequestKind::kLoglikelihood});
  TestAgent agent;
  const auto hello = agent.Expect<protocol::Hello>();
  EXPECT_EQ(hello.version, protocol::kVersion);
  EXPECT_EQ(hello.role, "worker");
  EXPECT_EQ(hello.id, "w0");
  EXPECT_EQ(hello.pid, agent.pid());
  EXPECT_TRUE(EngineInfoFromJson(hello.engine, "hello").emulated);
  agent.Send(protocol::Load{folder_.path(), "f00d"});
  const auto loaded = agent.Expect<protocol::Loaded>();
  EXPECT_EQ(EngineInfoFromJson(loaded.engine, "loaded").max_length, 4096);
  for (int64_t trial = 0; trial < 3; ++trial) {
    agent.AwaitWant();
    agent.Send(MakeLease(trial, 0, trial * 10, trial * 10 + 10));
    const auto done = agent.Expect<protocol::SliceDone>();
    EXPECT_EQ(done.trial, trial);
    EXPECT_EQ(done.requests, 20);
    EXPECT_EQ(done.bytes, fs::file_size(done.file));
    EXPECT_EQ(done.hash, HashHex(ReadFile(done.file)));
    EXPECT_EQ(agent.Expect<protocol::TrialDone>().trial, trial);
  }
  agent.Send(protocol::Drain{});
  EXPECT_EQ(agent.Wait(), 0);
}

TEST_F(WorkerProcess, BeatsWhileTheEngineLoadsAndWhileItIsIdle) {
  TestAgent loading({Json{{"load_seconds", 3600}}});
  loading.Expect<protocol::Hello>();
  loading.Send(protocol::Load{folder_.path(), "f00d"});
  TestAgent idle;
  idle.StartUp();
  for (TestAgent* agent : {&loading, &idle}) {
    for (int beat = 0; beat < 2; ++beat) {
      ASSERT_TRUE(agent->ReadProgress());
      EXPECT_EQ(agent->progress.back().trial, -1);
    }
    agent->Send(protocol::Stop{});
    EXPECT_EQ(agent->Wait(), 0);
  }
}

TEST_F(WorkerProcess, ReportsTheProgressOfWhatItHolds) {
  Prepare({"task", 4000});  // more than the worker will do
  TestAgent agent({Json{{"delay_ms", 50}, {"concurrency", 4}}});
  agent.StartUp();
  agent.Send(MakeLease(5, 2, 0, 4000));
  ASSERT_TRUE(agent.AwaitRequests(11));
  EXPECT_EQ(agent.progress.back().trial, 5);
  EXPECT_EQ(agent.progress.back().attempt, 2);
  EXPECT_LT(agent.progress.back().requests_done, 4000);
  EXPECT_EQ(agent.progress.back().tokens_out % 16, 0);
}

// A worker is killed at each fail point. The next attempt gives the same bytes as an undisturbed
// one, and makes again only the answers that had not reached the kernel yet.
class KilledAt : public WorkerProcess, public testing::WithParamInterface<const char*> {};

TEST_P(KilledAt, TheNextAttemptResumes) {
  Prepare({"task", 40, 1, RequestKind::kGenerateUntil, 2});
  const Json settings{{"concurrency", 4}, {"delay_ms", 1}, {"jitter", 1}};
  {
    TestAgent agent({settings, "emulated", {{"EVALD_FAIL_POINT", GetParam()}}});
    agent.StartUp();
    agent.Send(MakeLease(1, 0, 0, 40));
    while (agent.Next()) {
    }
    EXPECT_EQ(agent.Wait(), 128 + SIGKILL);
  }
  TestAgent agent({settings});
  agent.StartUp();
  agent.Send(MakeLease(1, 1, 0, 40, {File(1, 0), File(1, 0) + ".part"}));
  agent.Expect<protocol::SliceDone>();
  agent.Expect<protocol::TrialDone>();
  agent.Send(MakeLease(2, 0, 0, 40));
  EXPECT_EQ(agent.Expect<protocol::SliceDone>().requests, 80);
  EXPECT_EQ(ReadFile(File(1, 1)), ReadFile(File(2, 0)));
  EXPECT_EQ(ReadGenerations(File(1, 1)).size(), 80u);
}

INSTANTIATE_TEST_SUITE_P(Points, KilledAt,
                         testing::Values("worker.after_line:1", "worker.after_line:37",
                                         "worker.after_line:80", "worker.before_commit",
                                         "worker.after_sort", "worker.after_rename",
                                         "worker.after_slice_done"));

TEST_F(WorkerProcess, AKillLosesOnlyWhatFinishedSinceTheLastFlush) {
  Prepare({"task", 4000});
  TestAgent agent({Json{{"concurrency", 4}, {"delay_ms", 20}}});
  agent.StartUp();
  agent.Send(MakeLease(1, 0, 0, 4000));
  ASSERT_TRUE(agent.AwaitRequests(40));
  const int64_t reported = agent.progress.back().requests_done;
  agent.Kill(SIGKILL);
  agent.Wait();
  EXPECT_GE(static_cast<int64_t>(ReadGenerations(File(1, 0) + ".part").size()), reported);
}

TEST_F(WorkerProcess, ARevokedTrialStopsAndItsPartStays) {
  Prepare({"task", 4000});
  TestAgent agent({Json{{"concurrency", 2}, {"delay_ms", 50}}});
  agent.StartUp();
  agent.Send(MakeLease(1, 0, 0, 4000));
  ASSERT_TRUE(agent.AwaitRequests(2));
  agent.Send(protocol::Revoke{1, 0});
  const auto revoked = agent.Expect<protocol::Revoked>();  // its files change no more
  EXPECT_EQ(revoked.trial, 1);
  EXPECT_EQ(revoked.attempt, 0);
  const size_t written = ReadGenerations(File(1, 0) + ".part").size();
  agent.AwaitWant();  // it is free at once
  agent.Send(MakeLease(2, 0, 0, 2));
  EXPECT_EQ(agent.Expect<protocol::SliceDone>().trial, 2);
  EXPECT_FALSE(fs::exists(File(1, 0)));
  EXPECT_GE(written, 2u);
  EXPECT_EQ(ReadGenerations(File(1, 0) + ".part").size(), written);
}

TEST_F(WorkerProcess, StopIsObeyedAtOnceInMidTrial) {
  Prepare({"task", 4000});
  TestAgent agent({Json{{"concurrency", 1}, {"delay_ms", 100}}});
  agent.StartUp();
  agent.Send(MakeLease(1, 0, 0, 4000));
  ASSERT_TRUE(agent.AwaitRequests(1));
  const int64_t begin = MonotonicMicros();
  agent.Send(protocol::Stop{});
  EXPECT_EQ(agent.Wait(), 0);
  EXPECT_LT(MonotonicMicros() - begin, 60'000'000) << "the trial takes 400 s";
  EXPECT_GE(ReadGenerations(File(1, 0) + ".part").size(), 1u);
}

TEST_F(WorkerProcess, StopEndsAnEngineThatDoesNotComeBack) {
  TestAgent agent({Json{{"load_seconds", 3600}}});
  agent.Expect<protocol::Hello>();
  agent.Send(protocol::Load{folder_.path(), "f00d"});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  agent.Send(protocol::Stop{});
  EXPECT_EQ(agent.Wait(), 0);
}

TEST_F(WorkerProcess, DrainFinishesWhatIsHeld) {
  Prepare({"task", 20});
  TestAgent agent({Json{{"concurrency", 2}, {"delay_ms", 20}}});
  agent.StartUp();
  agent.Send(MakeLease(1, 0, 0, 20));
  agent.Send(protocol::Drain{});
  EXPECT_EQ(agent.Expect<protocol::SliceDone>().requests, 20);
  agent.Expect<protocol::TrialDone>();
  EXPECT_FALSE(agent.Next());
  EXPECT_EQ(agent.Wait(), 0);
}

TEST_F(WorkerProcess, AnAgentThatIsGoneEndsIt) {
  Prepare({"task", 1000});
  TestAgent agent({Json{{"concurrency", 1}, {"delay_ms", 20}}});
  agent.StartUp();
  agent.Send(MakeLease(1, 0, 0, 1000));
  ASSERT_TRUE(agent.AwaitRequests(1));
  agent.HangUp();
  EXPECT_EQ(agent.Wait(), 3);
  EXPECT_TRUE(fs::exists(File(1, 0) + ".part"));
}

TEST_F(WorkerProcess, NonsenseFromTheAgentIsToldAndSurvived) {
  Prepare({"task", 3});
  TestAgent agent;
  agent.StartUp();
  agent.SendRaw("this is not JSON\n");
  EXPECT_THAT(agent.Expect<protocol::TrialFailed>().message, HasSubstr("not JSON"));
  agent.SendRaw("{\"type\":\"lease\",\"trial\":1,\"attempt\":0,\"slices\":[{}]}\n");
  const auto failed = agent.Expect<protocol::TrialFailed>();
  EXPECT_EQ(failed.trial, -1);
  EXPECT_THAT(failed.message, HasSubstr("message 'lease': slices[0]: the key 'task' is absent"));
  agent.Send(MakeLease(1, 0, 0, 4));  // one document too many
  EXPECT_FALSE(agent.Expect<protocol::TrialFailed>().retry);
  agent.Send(protocol::Want{1});  // a worker never gets such a message
  agent.Send(MakeLease(2, 0, 0, 3));
  EXPECT_EQ(agent.Expect<protocol::SliceDone>().requests, 3);
}

TEST_F(WorkerProcess, AnEngineThatCannotBeMadeIsTold) {
  TestAgent unknown({Json::object(), "emulatd"});
  unknown.Expect<protocol::Hello>();
  EXPECT_THAT(unknown.Expect<protocol::TrialFailed>().message,
              HasSubstr("unknown engine 'emulatd'; did you mean 'emulated'?"));
  EXPECT_EQ(unknown.Wait(), 2);
  TestAgent setting({Json{{"dealy_ms", 3}}});
  setting.Expect<protocol::Hello>();
  EXPECT_THAT(setting.Expect<protocol::TrialFailed>().message,
              HasSubstr("key 'dealy_ms': unknown key; did you mean 'delay_ms'?"));
  EXPECT_EQ(setting.Wait(), 2);
}

constexpr const char* kGpu = "cuda:GPU-8f6d";

// The test holds the worker's device.
class WaitingWorker : public WorkerProcess {
 protected:
  WaitingWorker() : lock_(std::in_place, folder_.path() / "locks", kGpu) {
    EXPECT_TRUE(lock_->Take(std::chrono::milliseconds(0)));
    TestAgent::Options options;
    options.device = kGpu;
    options.environment["EVALD_DEVICE_LOCKS"] = (folder_.path() / "locks").string();
    agent_.emplace(options);
    const auto hello = agent_->Expect<protocol::Hello>();
    EXPECT_TRUE(hello.engine.is_null());
    EXPECT_THAT(hello.waits, HasSubstr(fmt::format("{} is held by process {} ", kGpu, ::getpid())));
  }

  std::optional<DeviceLock> lock_;
  std::optional<TestAgent> agent_;
};

TEST_F(WaitingWorker, BeginsWhenTheDeviceIsFree) {
  lock_.reset();
  const auto hello = agent_->Expect<protocol::Hello>();
  EXPECT_EQ(hello.waits, "");
  EXPECT_TRUE(EngineInfoFromJson(hello.engine, "hello").emulated);
  agent_->Send(protocol::Load{folder_.path(), "f00d"});
  EXPECT_EQ(agent_->Expect<protocol::Loaded>().fingerprint, "f00d");
  DeviceLock another(folder_.path() / "locks", kGpu);
  EXPECT_FALSE(another.Take(std::chrono::milliseconds(0)));
  EXPECT_THAT(another.HeldBy(), HasSubstr(fmt::format("process {} ", agent_->pid())));
}

TEST_F(WaitingWorker, EndsWhenItIsToldTo) {
  agent_->Send(protocol::Stop{});
  EXPECT_EQ(agent_->Wait(), 0);
}

TEST_F(WaitingWorker, EndsWhenTheAgentIsGone) {
  agent_->HangUp();
  EXPECT_EQ(agent_->Wait(), 3);
}

TEST_F(WorkerProcess, AFailingEngineFailsTrialsWhichMayBeTriedAgain) {
  Prepare({"task", 5});
  TestAgent agent({Json{{"fail_rate", 1}}});
  agent.StartUp();
  agent.Send(MakeLease(1, 0, 0, 5));
  const auto failed = agent.Expect<protocol::TrialFailed>();
  EXPECT_TRUE(failed.retry);
  EXPECT_THAT(failed.message, HasSubstr("fail_rate"));
  agent.AwaitWant();
}

// A small tmpfs in a mount namespace that the worker shares.
TEST_F(WorkerProcess, AFullDiskFailsTheTrialNamesThePathAndKeepsThePart) {
  Prepare({"task", 2000});
  const fs::path small = folder_.path() / "small";
  fs::create_directory(small);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0) {
      ::_exit(77);
    }
    {
      TestAgent agent;
      agent.StartUp();
      const std::string file = small / "1.0.jsonl";
      agent.Send(protocol::Lease{1, 0, {{"task", prepared_, "", 0, 2000, file, {}}}, "f00d"});
      const auto failed = agent.Expect<protocol::TrialFailed>();
      EXPECT_TRUE(failed.retry);
      EXPECT_THAT(failed.message, HasSubstr("1.0.jsonl.part: write: No space left on device"));
      EXPECT_TRUE(fs::exists(file + ".part"));
      EXPECT_FALSE(fs::exists(file));
      agent.Send(protocol::Lease{2, 0, {{"task", prepared_, "", 0, 50, File(2, 0), {}}}, "f00d"});
      while (true) {  // the worker can still work
        const auto next = agent.Next();
        if (!next || std::holds_alternative<protocol::TrialDone>(*next)) break;
      }
      EXPECT_EQ(ReadGenerations(File(2, 0)).size(), 50u);
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "no mount namespace with a tmpfs can be had here";
  }
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace evald::test

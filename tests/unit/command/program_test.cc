// Programs as real processes: their ends, their time, what they leave behind.
#include "worker/command/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::command {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;
using Why = ProgramEnd::Why;

constexpr std::chrono::seconds kEndPatience{60};

class ProgramTest : public ::testing::Test {
 protected:
  ProgramOrder Order(const std::string& script) {
    ProgramOrder order;
    order.words = {"sh", "-c", script};
    order.folder = folder_.path();
    order.log = folder_ / "log";
    order.grace = std::chrono::milliseconds(300);
    return order;
  }
  ProgramEnd RunToEnd(const ProgramOrder& order) {
    Program program(order);
    const auto end = program.Wait(kEndPatience);
    if (!end) ADD_FAILURE() << "it did not end";
    tail_ = program.LogTail();
    return end.value_or(ProgramEnd{});
  }
  // The process that a script noted in a file; 0 if it is not there in time.
  pid_t Noted(const std::string& name) {
    for (const auto until = Clock::now() + kEndPatience; Clock::now() < until;) {
      std::ifstream file(folder_ / name);
      pid_t pid = 0;
      std::string end;
      if (file >> pid >> end && end == "noted") return pid;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return 0;
  }
  static bool Gone(pid_t pid) {
    for (const auto until = Clock::now() + kEndPatience; Clock::now() < until;) {
      if (::kill(pid, 0) != 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  std::string Log() { return ReadFile(folder_ / "log"); }

  TemporaryFolder folder_;
  std::string tail_;
};

TEST_F(ProgramTest, EndsWithItsStatus) {
  const auto begin = Clock::now();
  const ProgramEnd end = RunToEnd(Order("echo out; echo err >&2; pwd > where; exit 3"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20)) << "its end is told at once";
  EXPECT_EQ(end.why, Why::kExited);
  EXPECT_EQ(end.value, 3);
  EXPECT_EQ(tail_, "out\nerr\n");
  EXPECT_EQ(Log(), "out\nerr\n");
  EXPECT_EQ(std::filesystem::canonical(folder_.path()).string() + "\n",
            ReadFile(folder_ / "where"));
}

TEST_F(ProgramTest, EndsBySignal) {
  const ProgramEnd end = RunToEnd(Order("kill -SEGV $$"));
  EXPECT_EQ(end.why, Why::kSignalled);
  EXPECT_EQ(end.value, SIGSEGV);
}

// A shell reports a child's signal as 128 + signal; an exit status must not be taken for one.
TEST_F(ProgramTest, AStatusAbove128IsAStatus) {
  const ProgramEnd end = RunToEnd(Order("exit 137"));
  EXPECT_EQ(end.why, Why::kExited);
  EXPECT_EQ(end.value, 137);
}

TEST_F(ProgramTest, HasNoInputAndDefaultSignals) {
  RunToEnd(Order("cat; grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l"));
  EXPECT_THAT(tail_, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(tail_, HasSubstr("SigIgn:\t0000000000000000"));
}

TEST_F(ProgramTest, InheritsNoFiles) {
  const UniqueFd secret(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  RunToEnd(Order("readlink /proc/$$/fd/" + std::to_string(secret.get()) + " || echo none"));
  EXPECT_THAT(tail_, HasSubstr("none"));
}

TEST_F(ProgramTest, HasTheEnvironmentAndMore) {
  ::setenv("EVALD_TEST_GIVEN", "given", 1);
  ::setenv("EVALD_TEST_CHANGED", "before", 1);
  ProgramOrder order = Order("echo $EVALD_TEST_GIVEN $EVALD_TEST_CHANGED $EVALD_TEST_ADDED");
  order.environment = {{"EVALD_TEST_CHANGED", "after"}, {"EVALD_TEST_ADDED", "added = 1"}};
  RunToEnd(order);
  EXPECT_EQ(tail_, "given after added = 1\n");
}

TEST_F(ProgramTest, IsLookedForOnItsOwnPath) {
  folder_.Write("bin/mine", "#!/bin/sh\necho mine\n");
  std::filesystem::permissions(folder_ / "bin/mine", std::filesystem::perms::owner_all);
  ProgramOrder order = Order("");
  order.words = {"mine"};
  order.environment["PATH"] = (folder_ / "bin").string() + ":/usr/bin:/bin";
  EXPECT_EQ(RunToEnd(order).value, 0);
  EXPECT_EQ(tail_, "mine\n");
}

TEST_F(ProgramTest, OneThatCannotBeStartedSaysWhy) {
  ProgramOrder order = Order("");
  order.words = {"no-such-program-anywhere"};
  ProgramEnd end = RunToEnd(order);
  EXPECT_EQ(end.why, Why::kNotStarted);
  EXPECT_EQ(end.value, ENOENT);
  order.words = {folder_.Write("text", "no program").string()};
  end = RunToEnd(order);
  EXPECT_EQ(end.why, Why::kNotStarted);
  EXPECT_EQ(end.value, EACCES);
  std::filesystem::permissions(folder_ / "text", std::filesystem::perms::owner_all);
  end = RunToEnd(order);
  EXPECT_EQ(end.why, Why::kNotStarted);
  EXPECT_EQ(end.value, ENOEXEC);
  order = Order("true");
  order.folder = folder_ / "absent";
  end = RunToEnd(order);
  EXPECT_EQ(end.why, Why::kNotStarted);
  EXPECT_EQ(end.value, ENOENT);
}

TEST_F(ProgramTest, ItsTimeIsLimited) {
  ProgramOrder order =
      Order("trap 'echo asked; exit 0' TERM; echo $$ noted > pid; sleep 600 & wait");
  order.time_limit = std::chrono::milliseconds(1500);
  const ProgramEnd end = RunToEnd(order);
  EXPECT_EQ(end.why, Why::kTimeLimit);
  EXPECT_EQ(tail_, "asked\n");
  EXPECT_TRUE(Gone(Noted("pid")));
}

TEST_F(ProgramTest, OneThatIgnoresTheRequestIsKilled) {
  ProgramOrder order = Order("trap '' TERM; echo $$ noted > pid; while true; do sleep 1; done");
  order.time_limit = std::chrono::milliseconds(1000);
  EXPECT_EQ(RunToEnd(order).why, Why::kTimeLimit);
  EXPECT_TRUE(Gone(Noted("pid")));
}

TEST_F(ProgramTest, ProcessesLeftBehindAreKilled) {
  const auto begin = Clock::now();
  const ProgramEnd end = RunToEnd(Order(
      "sleep 600 & echo $! noted > child\n"
      "setsid sh -c 'trap \"\" HUP TERM; sh -c \"echo \\$\\$ noted > daemon; exec sleep 600\" &'\n"
      "while [ ! -s daemon ]; do sleep 0.05; done"));
  EXPECT_EQ(end.why, Why::kExited);
  EXPECT_LT(Clock::now() - begin, kEndPatience);
  // They are gone by the time that the end is told.
  EXPECT_NE(::kill(Noted("child"), 0), 0);
  EXPECT_NE(::kill(Noted("daemon"), 0), 0);
}

TEST_F(ProgramTest, EndsWithItsObject) {
  {
    Program program(Order("echo $$ noted > pid; sleep 600 & echo $! noted > child; wait"));
    ASSERT_GT(Noted("child"), 0);
    EXPECT_FALSE(program.Wait(std::chrono::milliseconds(0)));
  }
  EXPECT_NE(::kill(Noted("pid"), 0), 0);
  EXPECT_NE(::kill(Noted("child"), 0), 0);
}

// kill -9 of the worker: nothing of the worker's own code runs any more.
TEST_F(ProgramTest, EndsWithItsProcess) {
  const pid_t worker = ::fork();
  if (worker == 0) {
    const Program program(
        Order("echo $$ noted > pid; setsid sleep 600 & echo $! noted > child; wait"));
    while (true) ::pause();
  }
  ASSERT_GT(Noted("child"), 0);
  ::kill(worker, SIGKILL);
  ASSERT_EQ(::waitpid(worker, nullptr, 0), worker);
  EXPECT_TRUE(Gone(Noted("pid")));
  EXPECT_TRUE(Gone(Noted("child")));
}

TEST_F(ProgramTest, AKilledGuardianTakesItsProgramWithIt) {
  Program program(Order("echo $$ noted > pid; echo $PPID noted > guardian; sleep 600"));
  const pid_t guardian = Noted("guardian");
  ASSERT_GT(guardian, 0);
  ::kill(guardian, SIGKILL);
  const auto end = program.Wait(kEndPatience);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->why, Why::kLost);
  EXPECT_TRUE(Gone(Noted("pid")));
}

TEST_F(ProgramTest, AFloodOfOutputNeitherBlocksItNorFillsTheDisk) {
  ProgramOrder order = Order("head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo the end");
  order.log_bytes_max = 1 << 20;
  EXPECT_EQ(RunToEnd(order).why, Why::kExited);
  EXPECT_THAT(tail_, ::testing::EndsWith("the end\n"));
  const std::string log = Log();
  EXPECT_LT(log.size(), (1U << 20) + (100U << 10));
  EXPECT_THAT(log.substr(1 << 20), HasSubstr("of output are left out here"));
  EXPECT_THAT(log, ::testing::EndsWith("the end\n"));
}

TEST_F(ProgramTest, TheLogIsAppendedTo) {
  RunToEnd(Order("echo one"));
  RunToEnd(Order("echo two"));
  EXPECT_EQ(Log(), "one\ntwo\n");
}

TEST_F(ProgramTest, TheTailIsUtf8) {
  RunToEnd(Order("printf 'a\\377b'"));
  EXPECT_EQ(tail_, "a\uFFFDb");
}

}  // namespace
}  // namespace evald::command

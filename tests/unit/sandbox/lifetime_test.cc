// The beginning, the end and the death of a sandbox. Nothing stays behind.

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "evald/error.h"
#include "metrics/sandbox/host_turn.h"
#include "tests/unit/sandbox/fixtures.h"
#include "tests/unit/support/caught.h"

namespace evald::sandbox_test {
namespace {

namespace fs = std::filesystem;
using enum ProgramStatus;

TEST_F(Isolated, AHundredProgramsLeaveNothing) {
  const std::string before = HostTraces();
  for (int i = 0; i < 100; ++i) {
    ExpectPasses(
        "open('x', 'w').write('x')\nimport threading\nthreading.Thread(target=id, "
        "args=(1,)).start()");
  }
  EXPECT_EQ(AwaitProcesses(options_.output_bytes, 1), 1u);
  runner_.reset();
  EXPECT_EQ(AwaitProcesses(options_.output_bytes, 0), 0u);
  EXPECT_EQ(HostTraces(), before);
}

TEST_F(Isolated, TwoRunnersAtOnce) {
  const auto other = MakeCodeRunner(options_);
  int failures[2] = {0, 0};
  const auto work = [](CodeRunner& runner, int* failed) {
    for (int i = 0; i < 20; ++i) {
      const bool fail = i % 2 == 0;
      const ProgramOutcome outcome =
          runner.Run(fail ? "open('a', 'x')\nassert 0" : "open('a', 'x')");
      if ((outcome.status == kPassed) == fail) ++*failed;
    }
  };
  std::thread first(work, std::ref(*runner_), &failures[0]);
  std::thread second(work, std::ref(*other), &failures[1]);
  first.join();
  second.join();
  EXPECT_EQ(failures[0] + failures[1], 0);
}

TEST_F(Isolated, ARunnerMayOutliveTheThreadThatMadeIt) {
  std::unique_ptr<CodeRunner> made;
  std::thread([&] { made = MakeCodeRunner(options_); }).join();
  EXPECT_EQ(made->Run("x = 1").detail, "passed");
}

TEST_F(Isolated, ADeadZygoteIsReplacedOnce) {
  for (const int pid : ProcessesOf(options_.output_bytes)) kill(pid, SIGKILL);
  ExpectPasses("x = 1");
}

TEST_F(Isolated, NothingSurvivesTheKillOfItsOwner) {
  runner_.reset();
  SandboxOptions options = ShortLimits(65535);
  options.wall_seconds = 600;
  const std::string before = HostTraces();
  const pid_t owner = fork();
  if (owner == 0) {
    RunOnce(options, "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)");
    _exit(0);
  }
  EXPECT_EQ(AwaitProcesses(65535, 3), 3u) << "zygote, first process of the namespace and program";
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_EQ(AwaitProcesses(65535, 0), 0u);
  EXPECT_EQ(HostTraces(), before);
}

/// Makes a copy of the host's root folder this process's root. Only its owner may enter the copy.
bool EnterRootOfMode0700() {
  const std::string root = "/mnt";  // hidden only in this mount namespace
  if (unshare(CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", root.c_str(), "tmpfs", 0, "mode=0700") != 0) {
    return false;
  }
  for (const auto& entry : fs::directory_iterator("/")) {
    const fs::path copy = root / entry.path().relative_path();
    if (entry.is_symlink()) {
      fs::copy_symlink(entry.path(), copy);
    } else if (entry.is_directory()) {
      fs::create_directory(copy);
      if (mount(entry.path().c_str(), copy.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
        return false;
    }
  }
  return chdir(root.c_str()) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
         umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
}

TEST_F(Isolated, InARootThatNobodyElseMayPass) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may enter another root";
  runner_.reset();
  const int status = InChild([&] {
    if (!EnterRootOfMode0700()) return 10;
    struct stat root = {};
    if (stat("/", &root) != 0 || (root.st_mode & 0777) != 0700) return 11;
    return RunOnce(ShortLimits(65527), "open('x', 'w').write('x')").status == kPassed ? 0 : 12;
  });
  if (status == 10) GTEST_SKIP() << "this process may not enter another root";
  EXPECT_EQ(status, 0);
}

/// The sandbox must work, and hold, for a user without privileges.
TEST_F(Isolated, AsAnOrdinaryUser) {
  if (geteuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user already";
  runner_.reset();
  const int status = InChild([&] {
    if (setgroups(0, nullptr) != 0 || setresgid(65534, 65534, 65534) != 0 ||
        setresuid(65534, 65534, 65534) != 0) {
      return 10;
    }
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // a change of user clears this flag; a new process has it
    SandboxOptions options = ShortLimits(65529);
    options.allow_processes = options.allow_ctypes = true;
    const auto runner = MakeCodeRunner(options);
    if (runner->Run("x = 1").status != kPassed) return 11;
    const ProgramOutcome bomb =
        runner->Run("import posix\nwhile True:\n  try: posix.fork()\n  except OSError: pass");
    if (bomb.status != kTimeout) return 12;
    runner->Run("import posix\nposix.kill(-1, 9)");
    if (runner
            ->Run("import os\nassert os.listdir('/tmp') == []\n"
                  "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == -1\n"
                  "assert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == -1")
            .status != kPassed) {
      return 13;
    }
    if (runner->Run("open('/etc/passwd')").status != kFailed) return 14;
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(AwaitProcesses(65529, 0), 0u);
}

/// Like a container that has only part of the host's ids. Limits hold for it too; they would not
/// hold for uid 0 of the host.
TEST_F(Isolated, AsRootOfAContainer) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can map ids as a container does";
  runner_.reset();
  const int status = InUserNamespace("0 0 65536", [&] {
    SandboxOptions options = ShortLimits(65521);
    options.allow_processes = true;
    options.processes = 16;
    const auto runner = MakeCodeRunner(options);
    const ProgramOutcome outcome = runner->Run(
        "import posix, time\n"
        "started = 0\n"
        "try:\n"
        "  for _ in range(100):\n"
        "    if posix.fork() == 0: time.sleep(60)\n"
        "    started += 1\n"
        "except BlockingIOError: pass\n"
        "assert 5 <= started <= 16, started");
    fprintf(stderr, "%s\n", outcome.detail.c_str());
    return outcome.status == kPassed ? 0 : 11;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Isolated, AsTheHostsRootAloneItRefuses) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can map itself";
  runner_.reset();
  const int status = InUserNamespace("0 0 1", [&] {
    try {
      MakeCodeRunner(options_);
      return 11;
    } catch (const Error& error) {
      return std::string(error.what()).find("uid_map") == std::string::npos ? 12 : 0;
    }
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Isolated, ProgramsAreNotRootOutside) {
  SandboxOptions options = ShortLimits(65527);
  options.wall_seconds = 600;
  const pid_t owner = fork();
  if (owner == 0) {
    RunOnce(options, "import time\ntime.sleep(600)");
    _exit(0);
  }
  EXPECT_EQ(AwaitProcesses(65527, 3), 3u);
  for (const int pid : ProcessesOf(65527)) {
    struct stat info = {};
    ASSERT_EQ(stat(("/proc/" + std::to_string(pid) + "/comm").c_str(), &info), 0);
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.starts_with("Uid:")) {
        EXPECT_EQ(line.find("\t0"), std::string::npos) << line;
      }
    }
  }
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_EQ(AwaitProcesses(65527, 0), 0u);
}

TEST_F(Isolated, AloneMeansAlone) {
  std::atomic<bool> ran{false};
  std::thread other;
  {
    const sandbox::TurnFolder folder(sandbox::DefaultTurnFolders());
    const sandbox::HostTurn alone = sandbox::HostTurn::Alone(folder, 0);
    other = std::thread([&] {
      runner_->Run("x = 1");
      ran = true;
    });
    usleep(300'000);
    EXPECT_FALSE(ran);
  }
  other.join();
  EXPECT_TRUE(ran);
}

/// No second run alone: it would wait for the turn that the test holds, and fail after a minute.
TEST_F(Isolated, SleepersAreJudgedBesideOthers) {
  options_.wall_seconds = 0.5;
  runner_ = MakeCodeRunner(options_);
  const sandbox::TurnFolder folder(sandbox::DefaultTurnFolders());
  const sandbox::HostTurn beside = sandbox::HostTurn::Shared(folder, 0);
  const char* const sleepers[] = {"import time\ntime.sleep(600)",
                                  "import time\nwhile True: time.sleep(0.002)",
                                  "import threading\nthreading.Event().wait()",
                                  "import signal\nsignal.raise_signal(signal.SIGSTOP)"};
  for (const char* sleeper : sleepers) {
    const ProgramOutcome outcome = runner_->Run(sleeper);
    EXPECT_EQ(outcome.detail, "timed out: 0.5 s on the clock") << sleeper;
  }
}

TEST_F(Isolated, IsolationIsNamed) {
  const Json isolation = runner_->Isolation();
  EXPECT_EQ(isolation.at("isolation"), "namespaces");
  EXPECT_EQ(isolation.at("seccomp"), true);
  EXPECT_EQ(isolation.at("namespaces").size(), 6u);
  EXPECT_FALSE(isolation.contains("unsafe"));
}

TEST_F(Isolated, EveryProbeSucceedsHere) {
  const auto probes = ProbeSandbox(options_);
  EXPECT_GE(probes.size(), 10u);
  for (const SandboxProbe& probe : probes)
    EXPECT_TRUE(probe.available) << probe.what << ": " << probe.detail;
}

TEST(Sandbox, AMissingInterpreterIsNamed) {
  SandboxOptions options = ShortLimits();
  options.python = "/nowhere/python3";
  const Error error = Caught([&] { MakeCodeRunner(options); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_NE(std::string(error.what()).find("/nowhere/python3"), std::string::npos);
  EXPECT_NE(error.remedy().find("metrics.sandbox.python"), std::string::npos);
  options.python = "/bin/true";
  EXPECT_THROW(MakeCodeRunner(options), Error);
  options = ShortLimits();
  options.cpu_seconds = 0;
  EXPECT_THROW(MakeCodeRunner(options), Error);
}

/// Without user namespaces the sandbox refuses. The test lowers their sysctl for a child in a
/// namespace of its own.
TEST_F(Isolated, WithoutNamespacesItRefuses) {
  runner_.reset();
  if (geteuid() != 0) GTEST_SKIP() << "only root can take namespaces away";
  const int status = InUserNamespace("0 0 65536", [&] {
    std::ofstream limit("/proc/sys/user/max_user_namespaces");
    limit << "0" << std::flush;
    if (!limit) return 0;  // the test may not set it on this host
    try {
      MakeCodeRunner(options_);
      return 11;
    } catch (const Error& error) {
      const std::string text = error.what();
      if (error.kind() != ErrorKind::kInfrastructure) return 12;
      if (text.find("namespaces") == std::string::npos) return 13;
      if (error.remedy().find("max_user_namespaces") == std::string::npos) return 14;
    }
    bool named = false;
    for (const SandboxProbe& probe : ProbeSandbox(options_)) {
      if (probe.what == "user namespaces") named = !probe.available && !probe.detail.empty();
    }
    if (!named) return 15;
    SandboxOptions unsafe = options_;
    unsafe.unsafe = true;
    return RunOnce(unsafe, "x = 1").status == kPassed ? 0 : 16;
  });
  EXPECT_EQ(status, 0);
}

class Unsafe : public Isolated {
 protected:
  Unsafe() {
    options_ = ShortLimits(65525);
    options_.wall_seconds = 120;  // the CPU time must decide
    options_.unsafe = true;
  }
};

TEST_F(Unsafe, RunsAndSaysSo) {
  ExpectPasses("x = 1");
  ExpectStatus(kFailed, "assert 0", "AssertionError");
  ExpectStatus(kFailed, "import os\nos._exit(0)", "before the tests did");
  ExpectStatus(kTimeout, "while True: pass", "CPU time");
  ExpectPasses("import os\nassert os.listdir('.') == []\nopen('x', 'w').write('x')");
  ExpectPasses("import os\nassert os.listdir('.') == []");
  const Json isolation = runner_->Isolation();
  EXPECT_EQ(isolation.at("isolation"), "none");
  EXPECT_EQ(isolation.at("unsafe"), true);
}

TEST_F(Unsafe, EndsWhatAProgramLeaves) {
  options_.allow_processes = true;
  runner_ = MakeCodeRunner(options_);
  const std::string before = HostTraces();
  ExpectPasses(
      "import posix, os, time\n"
      "if posix.fork() == 0:\n"
      "  os.setsid()\n"
      "  if posix.fork() == 0: time.sleep(60)\n"
      "  os._exit(0)\n"
      "time.sleep(0.2)");
  EXPECT_EQ(AwaitProcesses(options_.output_bytes, 1), 1u);
  EXPECT_EQ(HostTraces(), before);
}

TEST_F(Unsafe, NothingSurvivesTheKillOfItsOwner) {
  runner_.reset();
  SandboxOptions options = ShortLimits(65523);
  options.unsafe = true;
  options.wall_seconds = 600;
  const std::string before = HostTraces();
  const pid_t owner = fork();
  if (owner == 0) {
    RunOnce(options, "import time\ntime.sleep(600)");
    _exit(0);
  }
  EXPECT_EQ(AwaitProcesses(65523, 2), 2u);
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_EQ(AwaitProcesses(65523, 0), 0u);
  EXPECT_EQ(HostTraces(), before);
}

}  // namespace
}  // namespace evald::sandbox_test

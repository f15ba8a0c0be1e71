// A signal that a program sends to itself, with its default action, ends the program as under
// code_eval.

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

TEST_F(Isolated, SignalsOfItsOwnEndAProgram) {
  for (const char* name :
       {"SIGKILL", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGVTALRM", "SIGABRT", "SIGSYS"}) {
    ExpectStatus(kKilled, std::string("import signal\nsignal.raise_signal(signal.") + name + ")",
                 "killed by signal");
  }
  ExpectStatus(kFailed, "import signal\nsignal.raise_signal(signal.SIGINT)", "KeyboardInterrupt");
  ExpectStatus(kKilled, "import faulthandler\nfaulthandler._sigsegv()", "Segmentation fault");
  ExpectStatus(kKilled, "import faulthandler\nfaulthandler._sigabrt()", "Abort");
}

/// Kills the program of this test's runner `times` times, from outside, as the OOM killer does. The
/// program is known by its size.
void KillLargeProgram(uint64_t marker, int times) {
  for (int tries = 0; tries < 2000 && times > 0; ++tries) {
    for (const int pid : ProcessesOf(marker)) {
      std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
      long pages = 0;
      long resident = 0;
      file >> pages >> resident;
      if (resident * sysconf(_SC_PAGESIZE) < (100 << 20)) continue;
      if (kill(pid, SIGKILL) == 0) --times;
      while (kill(pid, 0) == 0) usleep(1000);
      break;
    }
    usleep(5000);
  }
}

constexpr const char* kLargeProgram = "import time\nx = bytearray(120 << 20)\ntime.sleep(1.5)";

TEST_F(Isolated, AKillFromOutsideIsNoWrongAnswer) {
  std::thread killer([&] { KillLargeProgram(options_.output_bytes, 1); });
  ExpectPasses(kLargeProgram);
  killer.join();
}

TEST_F(Isolated, TwoKillsEndAProgram) {
  std::thread killer([&] { KillLargeProgram(options_.output_bytes, 2); });
  ExpectStatus(kKilled, kLargeProgram, "killed by signal 9");
  killer.join();
}

TEST_F(Isolated, AlarmsWithoutAHandlerEndAProgram) {
  ExpectStatus(kKilled,
               "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(2)",
               "Alarm");
  ExpectStatus(kKilled,
               "import signal\nsignal.setitimer(signal.ITIMER_VIRTUAL, 0.01)\nwhile True: pass",
               "killed by signal");
}

TEST_F(Isolated, HandlersOfItsOwnWork) {
  ExpectPasses(
      "import signal, time\n"
      "seen = []\n"
      "signal.signal(signal.SIGALRM, lambda *a: seen.append(1))\n"
      "signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
      "while not seen: time.sleep(0.01)\n"
      "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
      "signal.raise_signal(signal.SIGTERM)\n"
      "assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()");
}

TEST_F(Isolated, TheProgramIsNotTheFirstProcess) {
  ExpectPasses(
      "import os\nassert os.getpid() == 2 and os.getppid() == 0, (os.getpid(), os.getppid())");
  ExpectPasses("import os\nassert os.getpid() == 2, 'each has a namespace of its own'");
}

/// Signals to the idle first process have no effect. If all processes have one user id, the kernel
/// lets a program send such signals.
TEST_F(IsolatedWithProcesses, TheFirstProcessIsOutOfReach) {
  for (int i = 0; i < 2; ++i) {
    ExpectPasses(
        "import posix, signal\n"
        "for number in range(1, 65):\n"
        "  try: posix.kill(1, number)\n"
        "  except (PermissionError, OSError): pass");
  }
}

/// The first process adopts an orphan, not the program.
TEST_F(IsolatedWithProcesses, OrphansAreNotTheProgramsChildren) {
  ExpectPasses(
      "import posix, os, time\n"
      "child = posix.fork()\n"
      "if child == 0:\n"
      "  if posix.fork() == 0:\n"
      "    time.sleep(0.2)\n"
      "    os._exit(0)\n"
      "  os._exit(0)\n"
      "assert os.waitpid(child, 0)[0] == child\n"
      "try: os.wait()\n"
      "except ChildProcessError: pass\n"
      "else: raise AssertionError");
}

}  // namespace
}  // namespace evald::sandbox_test

// A signal that a program sends to itself, with its default action, ends the program as under
// code_eval.

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

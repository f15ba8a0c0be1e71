// CPU time of programs that may fork (allow_processes).

#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

/// The CPU time must decide, even if a busy machine gives the program little of it.
class BusyMachineWithProcesses : public IsolatedWithProcesses {
 protected:
  BusyMachineWithProcesses() { options_.wall_seconds = 120; }
};

constexpr const char* kBurn =
    "import os, posix, signal, time\n"
    "def burn(seconds):\n"
    "  while time.process_time() < seconds: pass\n"
    "  os._exit(0)\n";

TEST_F(BusyMachineWithProcesses, ChildrenThatNobodyWaitsForCount) {
  ExpectStatus(kTimeout,
               std::string(kBurn) +
                   "try: signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                   "except OSError: pass\n"
                   "while True:\n"
                   "  try:\n"
                   "    if posix.fork() == 0: burn(0.2)\n"
                   "  except OSError: pass\n"
                   "  time.sleep(0.1)",
               "1 s of CPU time");
}

TEST_F(BusyMachineWithProcesses, GrandchildrenOfDeadParentsCount) {
  ExpectStatus(kTimeout,
               std::string(kBurn) +
                   "for _ in range(4):\n"
                   "  if posix.fork() == 0:\n"
                   "    if posix.fork() == 0: burn(100)\n"
                   "    os._exit(0)\n"
                   "while True: time.sleep(1)",
               "1 s of CPU time");
}

TEST_F(BusyMachineWithProcesses, ChildrenThatEndBeforeTheProgramCount) {
  ExpectStatus(kTimeout,
               std::string(kBurn) +
                   "for _ in range(8):\n"
                   "  if posix.fork() == 0: burn(0.2)\n"
                   "  os.wait()",
               "1 s of CPU time");
}

TEST_F(BusyMachineWithProcesses, WhatNobodyUsesUpPasses) {
  ExpectPasses(std::string(kBurn) +
               "for _ in range(4):\n"
               "  if posix.fork() == 0: burn(0.02)\n"
               "for _ in range(4): os.wait()");
}

}  // namespace
}  // namespace evald::sandbox_test

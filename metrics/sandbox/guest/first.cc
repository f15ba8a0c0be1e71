// The first process of a program's pid namespace, which is not the program.
//
// The kernel ignores signals without a handler in the first process of a namespace, and gives
// orphans to it. A program in that place would survive `raise_signal(SIGKILL)` or an alarm, which
// end it under code_eval. So an idle process takes the place. Like a thread it shares the zygote's
// memory, so no page tables are copied.

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {
namespace {

alignas(64) char g_stack[16 << 10];

/// Every signal is blocked here: otherwise a handler of Python's would run in the zygote's memory.
/// SIGKILL ends the process.
int Idle(void*) {
  for (;;) syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

/// A descriptor of this process, by which it returns to its own pid namespace.
int OwnPidfd() {
  static int pidfd = -1;
  if (pidfd < 0) pidfd = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  return pidfd;
}

pid_t CloneIdle(int* pidfd) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid =
      clone(Idle, g_stack + sizeof(g_stack),
            CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_PIDFD | SIGCHLD, nullptr, pidfd);
  const int failed = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = failed;
  return pid;
}

}  // namespace

const char* StartPidNamespace(FirstProcess* first) {
  *first = {-1, -1};
  if (OwnPidfd() < 0) return "pidfd_open(the zygote)";
  if (syscall(SYS_unshare, CLONE_NEWPID) != 0) return "unshare(CLONE_NEWPID)";
  first->pid = CloneIdle(&first->pidfd);
  return first->pid < 0 ? "clone(the first process of a pid namespace)" : nullptr;
}

const char* LeavePidNamespace() {
  return syscall(SYS_setns, OwnPidfd(), CLONE_NEWPID) == 0 ? nullptr
                                                           : "setns(the zygote's pid namespace)";
}

uint64_t EndPidNamespace(const FirstProcess& first) {
  if (first.pid < 0) return 0;
  syscall(SYS_pidfd_send_signal, first.pidfd, SIGKILL, nullptr, 0);
  close(first.pidfd);
  rusage usage;
  memset(&usage, 0, sizeof(usage));
  while (wait4(first.pid, nullptr, __WALL, &usage) < 0 && errno == EINTR) {
  }
  return CpuMicros(usage);
}

}  // namespace evald::guest

#include "metrics/sandbox/contain.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "metrics/sandbox/wire.h"

namespace evald::sandbox {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

[[noreturn]] void Fail(const char* step) {
  SetupFailure failure = {};
  failure.error_number = errno;
  strncpy(failure.step, step, sizeof(failure.step) - 1);
  const ssize_t ignored = write(kReportFd, &failure, sizeof(failure));
  _exit(ignored < 0 ? 2 : 1);
}

void Check(bool done, const char* step) {
  if (!done) Fail(step);
}

void CheckStep(const char* failed_step) {
  if (failed_step != nullptr) Fail(failed_step);
}

/// Puts the descriptors at the numbers in wire.h and closes all others.
void ArrangeDescriptors(ContainPlan& plan) {
  constexpr int kAbove = 64;  // first out of each other's way
  const int control = fcntl(plan.control, F_DUPFD, kAbove);
  const int null = fcntl(plan.null, F_DUPFD, kAbove);
  const int errors = fcntl(plan.errors, F_DUPFD, kAbove);
  const int guest = plan.guest < 0 ? -1 : fcntl(plan.guest, F_DUPFD, kAbove);
  const int report = fcntl(plan.report, F_DUPFD, kAbove);
  const int proc = plan.proc < 0 ? -1 : fcntl(plan.proc, F_DUPFD, kAbove);
  dup2(report, kReportFd);
  fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  Check(dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(errors, 2) == 2, "dup2(standard streams)");
  Check(dup2(control, kControlFd) == kControlFd, "dup2(control socket)");
  Check(syscall(SYS_close_range, static_cast<unsigned>(kGuestFd), kAbove - 1u, 0u) == 0,
        "close_range()");
  Check(guest < 0 || dup2(guest, kGuestFd) == kGuestFd, "dup2(guest library)");
  Check(proc < 0 || dup2(proc, kProcFd) == kProcFd, "dup2(/proc)");
  Check(syscall(SYS_close_range, static_cast<unsigned>(kProcFd) + 1u, ~0u, 0u) == 0,
        "close_range()");
}

void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Lets the kernel end the sandbox first if memory runs out.
void OfferToOomKiller() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t ignored = write(fd, "900", 3);
  (void)ignored;
  close(fd);
}

void AwaitIdMaps() {
  char byte = 0;
  if (read(kControlFd, &byte, 1) != 1) _exit(0);  // the runner is gone
}

/// Becomes root, inside the namespaces only. Direct system calls: libc would signal other threads.
void BecomeZygoteUser(const ContainPlan& plan) {
  if (plan.user.own_ids) Check(syscall(SYS_setgroups, 0, nullptr) == 0, "setgroups(none)");
  Check(syscall(SYS_setresgid, 0, 0, 0) == 0, "setresgid(0)");
  Check(syscall(SYS_setresuid, 0, 0, 0) == 0, "setresuid(0)");
}

[[noreturn]] void Exec(const ContainPlan& plan) {
  constexpr size_t kMax = 64;
  char* arguments[kMax] = {};
  char* environment[kMax] = {};
  for (size_t i = 0; i < plan.arguments.size() && i + 1 < kMax; ++i) {
    arguments[i] = const_cast<char*>(plan.arguments[i].c_str());
  }
  for (size_t i = 0; i < plan.environment.size() && i + 1 < kMax; ++i) {
    environment[i] = const_cast<char*>(plan.environment[i].c_str());
  }
  execve(arguments[0], arguments, environment);
  Fail("execve(interpreter)");
}

/// Whether the process on the other end of the control socket has ended.
bool RunnerIsGone() {
  pollfd watched = {kControlFd, POLLRDHUP, 0};
  return poll(&watched, 1, 0) > 0 && (watched.revents & (POLLHUP | POLLRDHUP)) != 0;
}

void Restrict(const ContainPlan& plan) {
  const Restrictions& restrictions = *plan.restrictions;
  if (plan.namespaces) {
    CheckStep(DropBoundingSet());
    if (plan.user.own_ids) CheckStep(BecomeUser(kProgramUid));
    CheckStep(DropCapabilities());
  }
  CheckStep(GainNoPrivileges());
  CheckStep(DieWithParentThread(SIGKILL));
  if (RunnerIsGone()) _exit(0);
  CheckStep(LimitResources(restrictions.limits));
  if (!restrictions.filter.empty())
    CheckStep(InstallFilter(restrictions.filter.data(), restrictions.filter.size()));
}

/// The checklist.
[[noreturn]] void EnterSandbox(ContainPlan& plan) {
  ArrangeDescriptors(plan);
  ResetSignals();
  AwaitIdMaps();
  Check(setsid() >= 0, "setsid()");
  OfferToOomKiller();
  if (plan.namespaces) {
    CheckStep(CopyTrees(plan.root));
    CheckStep(MountRoot());
    BecomeZygoteUser(plan);
    CheckStep(BuildRoot(plan.root));
    CheckStep(EnterRoot());
    Check(sethostname("sandbox", 7) == 0, "sethostname()");
  }
  umask(022);
  // Object addresses decide the order of some sets. This makes them equal in every run, if it is
  // allowed.
  personality(ADDR_NO_RANDOMIZE);
  if (plan.restrictions) Restrict(plan);
  Exec(plan);
}

}  // namespace

pid_t StartContained(ContainPlan& plan) {
  const uint64_t flags = SIGCHLD | (plan.namespaces ? kNamespaces : 0);
  const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, flags, 0, 0, 0, 0));
  if (pid == 0) EnterSandbox(plan);
  return pid;
}

}  // namespace evald::sandbox

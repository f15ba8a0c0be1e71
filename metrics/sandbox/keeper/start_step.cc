// The process of a step: its streams and its restrictions, up to its exec.

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "metrics/sandbox/keeper/keeper.h"
#include "metrics/sandbox/restrictions.h"

namespace evald::keeper {
namespace {

/// What the child tells of a failure before its exec.
struct Failure {
  int error_number;
  bool is_exec;
  char step[sandbox::kStepBytes];
};

[[noreturn]] void Fail(int report, const char* step, bool is_exec = false) {
  Failure failure;
  memset(&failure, 0, sizeof(failure));
  failure.error_number = errno == 0 ? EIO : errno;
  failure.is_exec = is_exec;
  strncpy(failure.step, step, sizeof(failure.step) - 1);
  const ssize_t ignored = write(report, &failure, sizeof(failure));
  _exit(ignored < 0 ? 2 : 1);
}

void Check(int report, const char* failed_step) {
  if (failed_step != nullptr) Fail(report, failed_step);
}

/// Streams at 0, 1 and 2, the report at 3, which the exec closes, and nothing else.
void ArrangeStreams(int input, int output, int errors, int* report) {
  constexpr int kAbove = 32;  // first out of each other's way
  const int in = fcntl(input, F_DUPFD, kAbove);
  const int out = fcntl(output, F_DUPFD, kAbove);
  const int err = fcntl(errors, F_DUPFD, kAbove);
  const int rep = fcntl(*report, F_DUPFD, kAbove);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || dup2(rep, 3) < 0) _exit(2);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  *report = 3;
  if (syscall(SYS_close_range, 4u, ~0u, 0u) != 0) Fail(3, "close_range(4..)");
}

void SetLimits(const StepLimits& limits, int report) {
  using sandbox::LimitResource;
  Check(report, LimitResource(RLIMIT_CPU, limits.cpu_us / 1000000 + 2, "RLIMIT_CPU"));
  Check(report, LimitResource(RLIMIT_DATA, limits.memory_bytes, "RLIMIT_DATA"));
  Check(report, sandbox::LimitResources(
                    {limits.address_bytes, limits.file_bytes, limits.open_files, limits.tasks}));
}

[[noreturn]] void Become(const Keeper& keeper, const Step& step, int input, int output, int errors,
                         int report) {
  ArrangeStreams(input, output, errors, &report);
  if (setsid() < 0) Fail(report, "setsid()");
  if (chdir(keeper.folder) != 0) Fail(report, "chdir(the program's folder)");
  if (keeper.config.namespaces != 0) {
    Check(report, sandbox::DropBoundingSet());
    if (keeper.config.program_uid != 0) {
      Check(report, sandbox::BecomeUser(keeper.config.program_uid));
    }
    Check(report, sandbox::DropCapabilities());
  }
  Check(report, sandbox::GainNoPrivileges());
  Check(report, sandbox::DieWithParentThread(SIGKILL));
  SetLimits(step.limits, report);
  const uint32_t index = step.limits.processes != 0 ? 1 : 0;
  const char* const failed =
      sandbox::InstallFilter(keeper.filters[index], keeper.config.instructions[index]);
  if (keeper.config.filter_required != 0) Check(report, failed);
  execve(step.arguments[0], step.arguments, step.environment);
  Fail(report, step.arguments[0], true);
}

}  // namespace

const char* StartStep(const Keeper& keeper, const Step& step, pid_t* pid, int* pidfd, int* output,
                      int* errors, bool* is_exec) {
  static Failure failure;
  *is_exec = false;
  int out[2];
  int err[2];
  int report[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0)
    return "pipe()";
  *pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, pidfd, 0, 0));
  if (*pid == 0) Become(keeper, step, step.input, out[1], err[1], report[1]);
  const int clone_errno = errno;
  for (const int fd : {out[1], err[1], report[1]}) close(fd);
  memset(&failure, 0, sizeof(failure));
  ssize_t got = 0;
  while (*pid > 0 && (got = read(report[0], &failure, sizeof(failure))) < 0 && errno == EINTR) {
  }
  close(report[0]);
  *output = out[0];
  *errors = err[0];
  for (const int fd : {out[0], err[0]}) fcntl(fd, F_SETFL, O_NONBLOCK);
  if (*pid < 0) {
    errno = clone_errno;
    return "clone(the process of a step)";
  }
  if (got != static_cast<ssize_t>(sizeof(failure))) return nullptr;
  *is_exec = failure.is_exec;
  errno = failure.error_number;
  return failure.step;
}

}  // namespace evald::keeper

// Watches a step until all its processes have ended.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "metrics/sandbox/guest/control.h"
#include "metrics/sandbox/guest/guest.h"
#include "metrics/sandbox/guest/wall_clock.h"
#include "metrics/sandbox/keeper/keeper.h"

namespace evald::keeper {
namespace {

using guest::RunnerHasGone;
using guest::WallVerdict;
using sandbox::StepEnd;

/// Resident memory beyond the limit: pages of programs and libraries, which are the kernel's.
constexpr uint64_t kMappedFilesBytes = 128ull << 20;

uint64_t Larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/// CPU time of the process `pid` so far, over all its threads; 0 if it is unknown.
uint64_t ProcessCpuNanos(pid_t pid) {
  clockid_t clock;
  timespec used;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
}

/// A step's process and the streams that it and its children write to.
struct Running {
  const Keeper& keeper;
  const StepLimits& limits;
  Said* said;
  pid_t pid;
  int pidfd;
  int output;
  int errors;
  bool overflowed;  ///< more output came than is kept
  uint64_t cpu_us;  ///< the most that its processes were seen to have used together
};

/// Takes what has come on a stream, at most 1 MiB, so that a flood does not hold the watch. False
/// at the stream's end.
bool Take(Running* running, int fd, bool is_output) {
  static char piece[64 << 10];
  for (int i = 0; i < 16; ++i) {
    const ssize_t got = read(fd, piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const auto count = static_cast<uint64_t>(got);
    if (is_output && !Keep(&running->said->output, piece, count, running->limits.output_bytes))
      running->overflowed = true;
    if (!is_output || running->limits.errors_too != 0)
      KeepLast(&running->said->errors, piece, count, sandbox::kStepErrorBytes);
  }
  return true;
}

void TakeFrom(Running* running, int* fd, bool is_output) {
  if (*fd < 0 || Take(running, *fd, is_output)) return;
  close(*fd);
  *fd = -1;
}

/// Ends and reaps every other process of the sandbox. Returns their CPU time.
uint64_t EndAll(const Keeper& keeper) {
  uint64_t cpu_us = 0;
  if (keeper.config.namespaces == 0) {
    guest::EndDescendants(&cpu_us);
    return cpu_us;
  }
  for (;;) {
    kill(-1, SIGKILL);
    rusage usage;
    memset(&usage, 0, sizeof(usage));
    const pid_t reaped = wait4(-1, nullptr, __WALL, &usage);
    if (reaped < 0 && errno == ECHILD) return cpu_us;
    if (reaped > 0) cpu_us += guest::CpuMicros(usage);
  }
}

/// Whether a limit is reached.
StepEnd Look(Running* running, guest::WallClock* wall, WallVerdict* verdict) {
  const StepLimits& limits = running->limits;
  const uint64_t own_cpu_ns = ProcessCpuNanos(running->pid);
  running->cpu_us = Larger(running->cpu_us, own_cpu_ns / 1000);
  if (limits.processes != 0) running->cpu_us = Larger(running->cpu_us, guest::TreeCpuMicros());
  if (running->cpu_us >= limits.cpu_us) return StepEnd::kCpu;
  if (guest::TreeMemoryBytes() > limits.memory_bytes + kMappedFilesBytes) return StepEnd::kMemory;
  if (running->overflowed && limits.ends_at_output != 0) return StepEnd::kOutput;
  if (!wall->IsDue()) return StepEnd::kItself;
  const guest::Waiting unknown = {false, false, 0};  // that of other processes
  *verdict =
      wall->Judge(running->cpu_us,
                  limits.processes != 0 ? unknown : guest::WaitingOf(running->pidfd, own_cpu_ns));
  return *verdict == WallVerdict::kWithin ? StepEnd::kItself : StepEnd::kWall;
}

/// Waits for the end of the step's process, or ends it at a limit.
StepEnd Watch(Running* running, WallVerdict* verdict) {
  constexpr long kTickNs = 20'000'000;
  sandbox::ProgramRequest request;
  memset(&request, 0, sizeof(request));
  request.wall_limit_us = running->limits.wall_us;
  request.wall_windows = running->limits.wall_windows;
  guest::WallClock wall(request, running->limits.cpu_us);
  uint64_t next_us = 0;
  for (;;) {
    if (guest::NowMicros() >= next_us) {
      const StepEnd end = Look(running, &wall, verdict);
      if (end != StepEnd::kItself) return end;
      next_us = guest::NowMicros() + kTickNs / 1000;
    }
    pollfd watched[4] = {{running->pidfd, POLLIN, 0},
                         {running->output, POLLIN, 0},
                         {running->errors, POLLIN, 0},
                         {sandbox::kControlFd, POLLRDHUP, 0}};
    const timespec pause = {0, kTickNs};
    if (ppoll(watched, 4, &pause, nullptr) < 0 && errno != EINTR) return StepEnd::kItself;
    if (watched[1].revents != 0) TakeFrom(running, &running->output, true);
    if (watched[2].revents != 0) TakeFrom(running, &running->errors, false);
    if (watched[0].revents != 0) return StepEnd::kItself;
    if (watched[3].revents != 0 && RunnerHasGone()) {
      EndAll(running->keeper);
      _exit(0);
    }
  }
}

/// Reads what is left in the pipes. Nobody writes to them any more.
void Drain(Running* running) {
  for (int i = 0; i < 4; ++i) {  // a pipe holds less
    TakeFrom(running, &running->output, true);
    TakeFrom(running, &running->errors, false);
  }
  for (const int fd : {running->output, running->errors}) {
    if (fd >= 0) close(fd);
  }
}

bool WaitedForDisk(const rusage& usage) { return usage.ru_majflt > 0 || usage.ru_inblock > 0; }

void FailStart(KeeperReport* report, const char* step, bool is_exec) {
  report->setup_errno = errno == 0 ? EIO : errno;
  report->is_exec = is_exec ? 1 : 0;
  strncpy(report->setup_step, step, sizeof(report->setup_step) - 1);
}

}  // namespace

void RunStep(const Keeper& keeper, const Step& step, KeeperReport* report, Said* said) {
  Running running = {keeper, step.limits, said, -1, -1, -1, -1, false, 0};
  bool is_exec = false;
  const char* const failed = StartStep(keeper, step, &running.pid, &running.pidfd, &running.output,
                                       &running.errors, &is_exec);
  WallVerdict verdict = WallVerdict::kWithin;
  if (failed != nullptr) {
    FailStart(report, failed, is_exec);
  } else {
    report->end = Watch(&running, &verdict);
  }
  if (running.pidfd >= 0) {
    // A process that ended by itself keeps its status
    if (report->end != StepEnd::kItself)
      syscall(SYS_pidfd_send_signal, running.pidfd, SIGKILL, nullptr, 0);
    rusage usage;
    memset(&usage, 0, sizeof(usage));
    while (wait4(running.pid, &report->wait_status, __WALL, &usage) < 0 && errno == EINTR) {
    }
    close(running.pidfd);
    report->slept = verdict == WallVerdict::kSlept && !WaitedForDisk(usage) ? 1 : 0;
    report->cpu_us = Larger(guest::CpuMicros(usage) + EndAll(keeper), running.cpu_us);
  }
  Drain(&running);
  if (report->end == StepEnd::kItself && running.overflowed && step.limits.ends_at_output != 0)
    report->end = StepEnd::kOutput;
}

}  // namespace evald::keeper

// Starts a program in fresh namespaces, watches the clocks and the runner, and counts.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "metrics/sandbox/guest/control.h"
#include "metrics/sandbox/guest/guest.h"
#include "metrics/sandbox/guest/wall_clock.h"

extern "C" {
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
}

namespace evald::guest {
namespace {

uint64_t Larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/// Without namespaces, nothing ends by itself with this process.
[[noreturn]] void EndZygote(const Zygote& zygote, int pidfd) {
  syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  if (!zygote.config.namespaces) {
    uint64_t ignored = 0;
    EndDescendants(&ignored);
    RemoveScratch(zygote.scratch);
  }
  _exit(0);
}

/// CPU time of the process `pid` so far, over all its threads; 0 if it is unknown.
uint64_t ProcessCpuNanos(pid_t pid) {
  clockid_t clock;
  timespec used;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
}

/// Waits for the program's process to end. Kills it when it has used up its CPU time or reached the
/// wall limit; returns the verdict on the wall limit. Sets `cpu_us` to the most CPU time that the
/// program's processes were seen to have used together.
WallVerdict WaitWithinLimits(const Zygote& zygote, const ProgramRequest& request, pid_t pid,
                             int pidfd, uint64_t* cpu_us) {
  constexpr long kTickNs = 50'000'000;
  const bool may_fork = zygote.config.allow_processes != 0;
  WallClock wall(request, zygote.config.cpu_limit_us);
  pollfd watched[2] = {{pidfd, POLLIN, 0}, {sandbox::kControlFd, POLLIN | POLLRDHUP, 0}};
  WallVerdict verdict = WallVerdict::kWithin;
  for (;;) {
    const uint64_t own_cpu_ns = ProcessCpuNanos(pid);
    *cpu_us = Larger(*cpu_us, own_cpu_ns / 1000);
    if (may_fork) *cpu_us = Larger(*cpu_us, TreeCpuMicros());
    if (wall.IsDue()) {
      // The waits of other processes are unknown.
      const Waiting unknown = {false, false, 0};
      verdict = wall.Judge(*cpu_us, may_fork ? unknown : WaitingOf(pidfd, own_cpu_ns));
    }
    if (verdict != WallVerdict::kWithin || *cpu_us >= zygote.config.cpu_limit_us) break;
    const timespec pause = {0, kTickNs};
    const int ready = ppoll(watched, 2, &pause, nullptr);
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    if (watched[0].revents != 0) return WallVerdict::kWithin;
    if (RunnerHasGone()) EndZygote(zygote, pidfd);
    watched[1].fd = -1;  // the next request came early and waits
  }
  syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  return verdict;
}

void CopyCompletion(const Program& program, ProgramReport* report) {
  const CompletionPage& page = program.secret->completion;
  memcpy(report->record, page.record, sizeof(report->record));
  const uint32_t bytes = __atomic_load_n(&page.detail_bytes, __ATOMIC_RELAXED);
  report->detail_bytes = bytes < sandbox::kDetailBytes ? bytes : sandbox::kDetailBytes;
  memcpy(report->detail, page.detail, report->detail_bytes);
  report->output_bytes = __atomic_load_n(&page.output_bytes, __ATOMIC_RELAXED);
  memcpy(report->output, page.output, sizeof(report->output));
  report->setup_errno = program.setup->error_number;
  memcpy(report->setup_step, program.setup->step, sizeof(report->setup_step));
}

void FailStart(ProgramReport* report, const char* step) {
  report->setup_errno = errno == 0 ? EIO : errno;
  strncpy(report->setup_step, step, sizeof(report->setup_step) - 1);
}

/// Clones the program's process. With namespaces it is not the first process of its pid namespace.
/// Returns nullptr, or the step that failed, with errno.
const char* CloneProgram(Program& program, FirstProcess* first, pid_t* pid, int* pidfd) {
  uint64_t flags = CLONE_PIDFD | SIGCHLD;
  if (program.zygote->config.namespaces) {
    flags |= CLONE_NEWNS | CLONE_NEWIPC;
    if (const char* failed = StartPidNamespace(first)) return failed;
  }
  PyOS_BeforeFork();
  *pid = static_cast<pid_t>(syscall(SYS_clone, flags, 0, pidfd, 0, 0));
  if (*pid == 0) StartProgram(program);
  const int clone_errno = errno;
  PyOS_AfterFork_Parent();
  errno = clone_errno;
  if (*pid < 0) return "clone(a program's namespaces)";
  return program.zygote->config.namespaces ? LeavePidNamespace() : nullptr;
}

/// Whether the program waited for a disk, for pages or files: then the host slowed it.
bool WaitedForDisk(const rusage& usage) { return usage.ru_majflt > 0 || usage.ru_inblock > 0; }

}  // namespace

void FailSetup(SetupPage* setup, const char* step) {
  setup->error_number = errno == 0 ? EIO : errno;
  strncpy(setup->step, step, sizeof(setup->step) - 1);
  _exit(1);
}

void Supervise(Zygote& zygote, Program& program, ProgramReport* report) {
  if (!zygote.config.namespaces) {
    strcpy(zygote.scratch, "/tmp/evald-program-XXXXXX");
    if (mkdtemp(zygote.scratch) == nullptr)
      return FailStart(report, "mkdtemp(/tmp/evald-program-XXXXXX)");
  }
  const uint64_t start = NowMicros();
  FirstProcess first = {-1, -1};
  pid_t pid = -1;
  int pidfd = -1;
  if (const char* failed = CloneProgram(program, &first, &pid, &pidfd)) {
    FailStart(report, failed);
    EndPidNamespace(first);
    if (pid > 0) _exit(1);  // the cloned process ends with this one
    return;
  }
  uint64_t seen_cpu_us = 0;
  const WallVerdict wall = WaitWithinLimits(zygote, program.request, pid, pidfd, &seen_cpu_us);
  close(pidfd);
  rusage usage;
  memset(&usage, 0, sizeof(usage));
  while (wait4(pid, &report->wait_status, __WALL, &usage) < 0 && errno == EINTR) {
  }
  report->cpu_us = CpuMicros(usage);  // its own, and that of children for which it has waited
  const uint64_t orphans_cpu_us = EndPidNamespace(first);
  if (zygote.config.allow_processes != 0) report->cpu_us += orphans_cpu_us;
  if (!zygote.config.namespaces) {
    EndDescendants(&report->cpu_us);
    RemoveScratch(zygote.scratch);
  }
  report->cpu_us = Larger(report->cpu_us, seen_cpu_us);
  report->wall_exceeded = wall == WallVerdict::kWithin ? 0 : 1;
  report->slept = wall == WallVerdict::kSlept && !WaitedForDisk(usage) ? 1 : 0;
  report->wall_us = NowMicros() - start;
  CopyCompletion(program, report);
}

}  // namespace evald::guest

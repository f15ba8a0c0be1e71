// Starts a program in fresh namespaces, watches the clocks and the runner, and counts.

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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

#include "metrics/sandbox/guest/guest.h"

extern "C" {
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
}

namespace evald::guest {
namespace {

uint64_t NowMicros() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

uint64_t CpuMicros(const rusage& usage) {
  return static_cast<uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
         static_cast<uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

uint64_t Larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

bool RunnerHasGone() {
  char byte;
  return recv(sandbox::kControlFd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/// Without namespaces nothing dies by itself with this process.
[[noreturn]] void EndZygote(const Zygote& zygote, int pidfd) {
  syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  if (!zygote.config.namespaces) {
    uint64_t ignored = 0;
    EndDescendants(&ignored);
    RemoveScratch(zygote.scratch);
  }
  _exit(0);
}

/// CPU time of the process `pid` so far, all its threads; 0 when it cannot be told.
uint64_t ProcessCpuMicros(pid_t pid) {
  clockid_t clock;
  timespec used;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1000000 + static_cast<uint64_t>(used.tv_nsec) / 1000;
}

/// The wall limit, which is for programs that sleep (see kWallWindowsMax).
class WallClock {
 public:
  WallClock(const ProgramRequest& request, uint64_t cpu_limit_us)
      : limit_us_(request.wall_limit_us),
        windows_max_(request.wall_windows),
        cpu_limit_us_(cpu_limit_us),
        deadline_(NowMicros() + limit_us_) {}

  /// Whether the limit is reached by a program that has used `cpu_us` so far.
  bool Exceeded(uint64_t cpu_us) {
    if (NowMicros() < deadline_) return false;
    if (windows_ >= windows_max_) return true;
    const bool cpu_will_decide = cpu_us * windows_max_ >= cpu_limit_us_ * windows_;
    if (!cpu_will_decide) return true;
    ++windows_;
    deadline_ += limit_us_;
    return false;
  }

 private:
  const uint64_t limit_us_;
  const uint64_t windows_max_;
  const uint64_t cpu_limit_us_;
  uint64_t deadline_;
  uint64_t windows_ = 1;  ///< limits granted so far
};

/// Waits for the program's process to end; kills it, and so the whole tree, when it has used up its
/// CPU time or the wall limit is reached. Returns whether it was the latter.
/// `cpu_us` becomes the most CPU time that the program's processes were seen to have used together.
bool WaitWithinLimits(const Zygote& zygote, const ProgramRequest& request, pid_t pid, int pidfd,
                      uint64_t* cpu_us) {
  constexpr long kTickNs = 50'000'000;
  WallClock wall(request, zygote.config.cpu_limit_us);
  pollfd watched[2] = {{pidfd, POLLIN, 0}, {sandbox::kControlFd, POLLIN | POLLRDHUP, 0}};
  bool wall_exceeded = false;
  for (;;) {
    *cpu_us = Larger(*cpu_us, ProcessCpuMicros(pid));
    if (zygote.config.allow_processes != 0) *cpu_us = Larger(*cpu_us, TreeCpuMicros());
    wall_exceeded = wall.Exceeded(*cpu_us);
    if (wall_exceeded || *cpu_us >= zygote.config.cpu_limit_us) break;
    const timespec pause = {0, kTickNs};
    const int ready = ppoll(watched, 2, &pause, nullptr);
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    if (watched[0].revents != 0) return false;
    if (RunnerHasGone()) EndZygote(zygote, pidfd);
    watched[1].fd = -1;  // the next request came early: it waits
  }
  syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  return wall_exceeded;
}

void CopyCompletion(const Program& program, ProgramReport* report) {
  const CompletionPage& page = program.secret->completion;
  memcpy(report->record, page.record, sizeof(report->record));
  const uint32_t bytes = __atomic_load_n(&page.detail_bytes, __ATOMIC_RELAXED);
  report->detail_bytes = bytes < sandbox::kDetailBytes ? bytes : sandbox::kDetailBytes;
  memcpy(report->detail, page.detail, report->detail_bytes);
  report->setup_errno = program.setup->error_number;
  memcpy(report->setup_step, program.setup->step, sizeof(report->setup_step));
}

int RemoveEntry(const char* path, const struct stat*, int, FTW*) {
  remove(path);
  return 0;
}

}  // namespace

void FailSetup(SetupPage* setup, const char* step) {
  setup->error_number = errno == 0 ? EIO : errno;
  strncpy(setup->step, step, sizeof(setup->step) - 1);
  _exit(1);
}

void Supervise(Zygote& zygote, Program& program, ProgramReport* report) {
  uint64_t flags = CLONE_PIDFD | SIGCHLD;
  if (zygote.config.namespaces) {
    flags |= CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
  } else {
    strcpy(zygote.scratch, "/tmp/evald-program-XXXXXX");
    if (mkdtemp(zygote.scratch) == nullptr) {
      report->setup_errno = errno;
      strcpy(report->setup_step, "mkdtemp(/tmp/evald-program-XXXXXX)");
      return;
    }
  }
  const uint64_t start = NowMicros();
  int pidfd = -1;
  PyOS_BeforeFork();
  const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, flags, 0, &pidfd, 0, 0));
  if (pid == 0) StartProgram(program);
  const int clone_errno = errno;
  PyOS_AfterFork_Parent();
  if (pid < 0) {
    report->setup_errno = clone_errno;
    strcpy(report->setup_step, "clone(a program's namespaces)");
    return;
  }
  uint64_t seen_cpu_us = 0;
  report->wall_exceeded = WaitWithinLimits(zygote, program.request, pid, pidfd, &seen_cpu_us);
  close(pidfd);
  rusage usage;
  memset(&usage, 0, sizeof(usage));
  while (wait4(pid, &report->wait_status, __WALL, &usage) < 0 && errno == EINTR) {
  }
  report->cpu_us = CpuMicros(usage);  // and of what it has waited for
  if (!zygote.config.namespaces) {
    EndDescendants(&report->cpu_us);
    RemoveScratch(zygote.scratch);
  }
  report->cpu_us = Larger(report->cpu_us, seen_cpu_us);
  report->wall_us = NowMicros() - start;
  CopyCompletion(program, report);
}

void EndDescendants(uint64_t* cpu_us) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/task/%d/children", static_cast<int>(getpid()));
  for (int round = 0; round < 10000; ++round) {
    char text[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = '\0';
    char* at = text;
    while (*at != '\0') {
      char* end = at;
      const long pid = strtol(at, &end, 10);
      if (end == at) break;
      if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
      at = end;
    }
    rusage usage;
    memset(&usage, 0, sizeof(usage));
    const pid_t reaped = wait4(-1, nullptr, __WALL, &usage);
    if (reaped < 0 && errno == ECHILD) return;
    if (reaped > 0) *cpu_us += CpuMicros(usage);
  }
}

void RemoveScratch(const char* folder) { nftw(folder, RemoveEntry, 16, FTW_DEPTH | FTW_PHYS); }

}  // namespace evald::guest

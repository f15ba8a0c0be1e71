// The time that a program has waited for a processor, which the kernel counts for each thread
// (/proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst: time on a processor, time
// on a run queue, in ns).

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {
namespace {

/// The counts of a thread vanish when it ends. A thread has used at least this much processor time.
constexpr uint64_t kEndedThreadNs = 20'000;

/// The number of the process behind `pidfd` in the /proc of kProcFd; 0 if it is not shown.
long NumberOf(int pidfd) {
  char path[64];
  snprintf(path, sizeof(path), "self/fdinfo/%d", pidfd);
  char text[512];
  const char* const line = ReadProc(path, text, sizeof(text)) ? strstr(text, "\nPid:") : nullptr;
  return line == nullptr ? 0 : strtol(line + 5, nullptr, 10);
}

struct Threads {
  uint64_t ran_ns;
  uint64_t waited_ns;
  bool runnable;  ///< one of them runs or waits for a processor now
};

bool AddThread(long process, const char* thread, Threads* threads) {
  char path[320];
  char text[1024];
  snprintf(path, sizeof(path), "%ld/task/%s/schedstat", process, thread);
  if (!ReadProc(path, text, sizeof(text))) return false;
  char* end = nullptr;
  threads->ran_ns += strtoull(text, &end, 10);
  threads->waited_ns += strtoull(end, nullptr, 10);
  snprintf(path, sizeof(path), "%ld/task/%s/stat", process, thread);
  const char* const name_end = ReadProc(path, text, sizeof(text)) ? strrchr(text, ')') : nullptr;
  if (name_end == nullptr || strlen(name_end) < 3) return false;
  threads->runnable = threads->runnable || name_end[2] == 'R';
  return true;
}

bool AddThreads(long process, Threads* threads) {
  char path[64];
  snprintf(path, sizeof(path), "%ld/task", process);
  const int fd = openat(sandbox::kProcFd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = fd < 0 ? nullptr : fdopendir(fd);
  if (folder == nullptr) {
    if (fd >= 0) close(fd);
    return false;
  }
  bool all = true;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') all = AddThread(process, entry->d_name, threads) && all;
  }
  closedir(folder);
  return all;
}

}  // namespace

Waiting WaitingOf(int pidfd, uint64_t cpu_ns) {
  const long process = NumberOf(pidfd);
  Threads threads = {0, 0, false};
  if (process <= 0 || !AddThreads(process, &threads)) return {false, false, 0};
  const bool all = threads.ran_ns + kEndedThreadNs > cpu_ns;
  return {all, threads.runnable, threads.waited_ns / 1000};
}

}  // namespace evald::guest

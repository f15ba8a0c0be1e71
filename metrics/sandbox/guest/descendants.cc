// The end of what a program leaves behind, where no namespace ends it.

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {
namespace {

int RemoveEntry(const char* path, const struct stat*, int, FTW*) {
  remove(path);
  return 0;
}

}  // namespace

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

// The processes below this one and the CPU time that they have used, from /proc (proc(5)).

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {
namespace {

using sandbox::kProcFd;

constexpr size_t kProcessesMax = 4096;

/// The number of this process in the /proc of kProcFd; 0 if it is not shown.
long OwnNumber() {
  char text[32] = {};
  const ssize_t bytes = readlinkat(kProcFd, "self", text, sizeof(text) - 1);
  return bytes <= 0 ? 0 : strtol(text, nullptr, 10);
}

struct Processes {
  long numbers[kProcessesMax];
  size_t count;
};

/// Adds the children that one thread has forked. False if /proc does not list them.
bool AddChildrenOf(long process, const char* thread, Processes* found) {
  char path[320];
  snprintf(path, sizeof(path), "%ld/task/%s/children", process, thread);
  static char text[32 << 10];
  if (!ReadProc(path, text, sizeof(text))) return false;
  char* at = text;
  while (found->count < kProcessesMax) {
    char* end = at;
    const long child = strtol(at, &end, 10);
    if (end == at) break;
    found->numbers[found->count++] = child;
    at = end;
  }
  return true;
}

/// Adds the children of all threads of a process.
bool AddChildren(long process, Processes* found) {
  char path[64];
  snprintf(path, sizeof(path), "%ld/task", process);
  const int fd = openat(kProcFd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const threads = fd < 0 ? nullptr : fdopendir(fd);
  if (threads == nullptr) {
    if (fd >= 0) close(fd);
    return false;
  }
  bool told = false;
  while (const dirent* entry = readdir(threads)) {
    if (entry->d_name[0] != '.') told = AddChildrenOf(process, entry->d_name, found) || told;
  }
  closedir(threads);
  return told;
}

/// User and system time of a process and of the children for which it has waited, in ticks (fields
/// 14 to 17 of its stat, which follow the last parenthesis of its name).
uint64_t TicksOf(long process) {
  char path[64];
  snprintf(path, sizeof(path), "%ld/stat", process);
  char text[1024];
  const char* at = ReadProc(path, text, sizeof(text)) ? strrchr(text, ')') : nullptr;
  if (at == nullptr) return 0;
  for (int field = 2; at != nullptr && field < 14; ++field) at = strchr(at + 1, ' ');
  if (at == nullptr) return 0;
  uint64_t ticks = 0;
  for (int i = 0; i < 4; ++i) {
    char* end = nullptr;
    ticks += strtoull(at, &end, 10);
    at = end;
  }
  return ticks;
}

/// Resident memory of a process (the second field of its statm).
uint64_t ResidentPages(long process) {
  char path[64];
  snprintf(path, sizeof(path), "%ld/statm", process);
  char text[256];
  const char* const field = ReadProc(path, text, sizeof(text)) ? strchr(text, ' ') : nullptr;
  return field == nullptr ? 0 : strtoull(field, nullptr, 10);
}

/// A number of each process below this one, together.
uint64_t SumOfTree(uint64_t (*number_of)(long process)) {
  static Processes found;
  found.count = 0;
  AddChildren(OwnNumber(), &found);
  uint64_t sum = 0;
  for (size_t i = 0; i < found.count; ++i) {
    sum += number_of(found.numbers[i]);
    AddChildren(found.numbers[i], &found);
  }
  return sum;
}

}  // namespace

bool ReadProc(const char* path, char* text, size_t bytes) {
  const int fd = openat(kProcFd, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t used = 0;
  ssize_t got = 0;
  while (used + 1 < bytes && (got = read(fd, text + used, bytes - 1 - used)) > 0) {
    used += static_cast<size_t>(got);
  }
  close(fd);
  text[used] = '\0';
  return got >= 0;
}

bool SeesProcesses() {
  static Processes found;
  found.count = 0;
  const long self = OwnNumber();
  return self > 0 && AddChildren(self, &found);
}

uint64_t TreeCpuMicros() {
  return SumOfTree(TicksOf) * 1000000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
}

uint64_t TreeMemoryBytes() {
  return SumOfTree(ResidentPages) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace evald::guest

// Preloaded by tests: a disk that takes long to make data durable, and a record of the threads that
// wait for it. Variables:
//
//   EVALD_SLOW_ROOT       the folder; files elsewhere are as fast as ever
//   EVALD_SLOW_PROGRAM    only processes of this program are slowed down and recorded
//   EVALD_SLOW_MAIN_MS    time that fsync and fdatasync take on a process's first thread,
//                         on which its loop runs
//   EVALD_SLOW_OTHERS_MS  time that they take on its other threads
//   EVALD_SLOW_LOG        a file to which "<process id> <main|other> <what> <path>" is
//                         appended for each fsync, and for each other call of the first thread
//                         to the folder's disk (open, rename, unlink, mkdir, opendir, statvfs)
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>

#include "tests/faults/layer.h"

namespace {

bool OnMain() { return ::syscall(SYS_gettid) == ::getpid(); }

class Disk {
 public:
  static Disk& Get() {
    static Disk* disk = new Disk;  // used until the end of the process
    return *disk;
  }

  void Asked(const char* what, const std::string& path) const {
    if (ours_ && OnMain() && IsBelow(path)) Log("main", what, path);
  }
  void Synced(int fd) const {
    const std::string path = ours_ ? layer::PathOf(fd) : "";
    if (path.empty() || !IsBelow(path)) return;
    const bool main = OnMain();
    Log(main ? "main" : "other", "fsync", path);
    const long ms = main ? main_ms_ : others_ms_;
    timespec left{ms / 1000, ms % 1000 * 1'000'000};
    while (ms > 0 && ::nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }

 private:
  Disk()
      : root_(layer::Variable("EVALD_SLOW_ROOT")),
        log_(layer::Variable("EVALD_SLOW_LOG")),
        ours_(layer::Variable("EVALD_SLOW_PROGRAM") == program_invocation_short_name),
        main_ms_(std::strtol(layer::Variable("EVALD_SLOW_MAIN_MS").c_str(), nullptr, 10)),
        others_ms_(std::strtol(layer::Variable("EVALD_SLOW_OTHERS_MS").c_str(), nullptr, 10)) {}

  bool IsBelow(const std::string& path) const { return path == root_ || layer::Below(path, root_); }

  void Log(const char* thread, const char* what, const std::string& path) const {
    const std::string line =
        std::to_string(::getpid()) + " " + thread + " " + what + " " + path + "\n";
    const long fd = ::syscall(SYS_openat, AT_FDCWD, log_.c_str(),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || ::syscall(SYS_write, fd, line.data(), line.size()) < 0) ::abort();
    ::syscall(SYS_close, fd);
  }

  std::string root_;
  std::string log_;
  bool ours_;
  long main_ms_;
  long others_ms_;
};

void Asked(const char* what, int at, const char* path) {
  const int saved = errno;
  Disk::Get().Asked(what, layer::Absolute(at, path));
  errno = saved;
}

int Slow(int fd, int result) {
  const int saved = errno;
  Disk::Get().Synced(fd);
  errno = saved;
  return result;
}

}  // namespace

extern "C" {

int fsync(int fd) { return Slow(fd, layer::Next<int (*)(int)>("fsync")(fd)); }
int fdatasync(int fd) { return Slow(fd, layer::Next<int (*)(int)>("fdatasync")(fd)); }

#define EVALD_OPEN(NAME, AT_PARAMETER, AT, CALL)                                         \
  int NAME(AT_PARAMETER const char* path, int flags, ...) {                              \
    va_list arguments;                                                                   \
    va_start(arguments, flags);                                                          \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                                   \
    Asked("open", AT, path);                                                             \
    return CALL;                                                                         \
  }
#define EVALD_COMMA ,
EVALD_OPEN(open, , AT_FDCWD,
           (layer::Next<int (*)(const char*, int, ...)>("open")(path, flags, mode)))
EVALD_OPEN(open64, , AT_FDCWD,
           (layer::Next<int (*)(const char*, int, ...)>("open64")(path, flags, mode)))
EVALD_OPEN(openat, int at EVALD_COMMA, at,
           (layer::Next<int (*)(int, const char*, int, ...)>("openat")(at, path, flags, mode)))
EVALD_OPEN(openat64, int at EVALD_COMMA, at,
           (layer::Next<int (*)(int, const char*, int, ...)>("openat64")(at, path, flags, mode)))

FILE* fopen(const char* path, const char* mode) {
  Asked("open", AT_FDCWD, path);
  return layer::Next<FILE* (*)(const char*, const char*)>("fopen")(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  Asked("open", AT_FDCWD, path);
  return layer::Next<FILE* (*)(const char*, const char*)>("fopen64")(path, mode);
}
int rename(const char* from, const char* to) {
  Asked("rename", AT_FDCWD, to);
  return layer::Next<int (*)(const char*, const char*)>("rename")(from, to);
}
int unlink(const char* path) {
  Asked("unlink", AT_FDCWD, path);
  return layer::Next<int (*)(const char*)>("unlink")(path);
}
int unlinkat(int at, const char* path, int flags) {
  Asked("unlink", at, path);
  return layer::Next<int (*)(int, const char*, int)>("unlinkat")(at, path, flags);
}
int mkdir(const char* path, mode_t mode) {
  Asked("mkdir", AT_FDCWD, path);
  return layer::Next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}
DIR* opendir(const char* path) {
  Asked("opendir", AT_FDCWD, path);
  return layer::Next<DIR* (*)(const char*)>("opendir")(path);
}
int statvfs(const char* path, struct statvfs* info) {
  Asked("statvfs", AT_FDCWD, path);
  return layer::Next<int (*)(const char*, struct statvfs*)>("statvfs")(path, info);
}
int statfs(const char* path, struct statfs* info) {
  Asked("statvfs", AT_FDCWD, path);
  return layer::Next<int (*)(const char*, struct statfs*)>("statfs")(path, info);
}

}  // extern "C"

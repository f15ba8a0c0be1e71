// Preloaded by tests: a disk that fails. Counts the operations of all processes with this layer
// that write below a folder (opening for writing, write, fsync, rename, link, truncate, fallocate,
// mkdir). Makes operation n fail, or all from n on. Variables:
//
//   EVALD_DISK_ROOT    the folder
//   EVALD_DISK_COUNT   a file of 16 bytes that the processes share: the count, and
//                      the number of faults that were made
//   EVALD_DISK_LOG     a file to which each operation is appended, as
//                      "<number> <program> <what> <path>"
//   EVALD_DISK_FAIL    n, or n+ for all from n on; absent: only counts
//   EVALD_DISK_ERROR   ENOSPC, EIO, or SHORT: half of a write is done, the rest fails with ENOSPC
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <atomic>

#include "tests/faults/layer.h"

namespace {

struct Shared {
  std::atomic<uint64_t> count;
  std::atomic<uint64_t> failed;
};

class Disk {
 public:
  static Disk& Get() {
    static Disk* disk = new Disk;  // used until the end of the process
    return *disk;
  }

  /// The errno with which this operation fails, or 0.
  int Fault(const char* what, const std::string& path) {
    if (shared_ == nullptr || !layer::Below(path, root_)) return 0;
    const uint64_t number = ++shared_->count;
    const bool fails = at_ > 0 && (from_ ? number >= at_ : number == at_);
    Log(number, what, path, fails);
    if (!fails) return 0;
    ++shared_->failed;
    return error_;
  }
  bool is_short() const { return short_; }

 private:
  Disk() : root_(layer::Variable("EVALD_DISK_ROOT")), log_(layer::Variable("EVALD_DISK_LOG")) {
    const std::string fail = layer::Variable("EVALD_DISK_FAIL"),
                      error = layer::Variable("EVALD_DISK_ERROR");
    at_ = std::strtoull(fail.c_str(), nullptr, 10);
    from_ = !fail.empty() && fail.back() == '+';
    short_ = error == "SHORT";
    error_ = error == "EIO" ? EIO : ENOSPC;
    const long fd = ::syscall(SYS_openat, AT_FDCWD, layer::Variable("EVALD_DISK_COUNT").c_str(),
                              O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void* mapped = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED,
                          static_cast<int>(fd), 0);
    ::syscall(SYS_close, fd);
    if (mapped != MAP_FAILED) shared_ = static_cast<Shared*>(mapped);
  }

  void Log(uint64_t number, const char* what, const std::string& path, bool fails) const {
    if (log_.empty()) return;
    char line[4400];
    const int bytes =
        ::snprintf(line, sizeof line, "%llu %s %s %s%s\n", static_cast<unsigned long long>(number),
                   program_invocation_short_name, what, path.c_str(), fails ? " FAILS" : "");
    const long fd = ::syscall(SYS_openat, AT_FDCWD, log_.c_str(),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || ::syscall(SYS_write, fd, line, bytes) < 0) ::abort();
    ::syscall(SYS_close, fd);
  }

  std::string root_;
  std::string log_;
  uint64_t at_ = 0;
  bool from_ = false;
  bool short_ = false;
  int error_ = 0;
  Shared* shared_ = nullptr;
};

bool Fails(const char* what, const std::string& path) {
  const int saved = errno;
  const int error = Disk::Get().Fault(what, path);
  errno = error != 0 ? error : saved;
  return error != 0;
}

constexpr int kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

}  // namespace

extern "C" {

#define EVALD_OPEN(NAME, AT_PARAMETER, AT, CALL)                                         \
  int NAME(AT_PARAMETER const char* path, int flags, ...) {                              \
    va_list arguments;                                                                   \
    va_start(arguments, flags);                                                          \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                                   \
    if ((flags & kWriting) && Fails("open", layer::Absolute(AT, path))) return -1;       \
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
  if (::strpbrk(mode, "wa+") != nullptr && Fails("open", layer::Absolute(AT_FDCWD, path)))
    return nullptr;
  return layer::Next<FILE* (*)(const char*, const char*)>("fopen")(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  if (::strpbrk(mode, "wa+") != nullptr && Fails("open", layer::Absolute(AT_FDCWD, path)))
    return nullptr;
  return layer::Next<FILE* (*)(const char*, const char*)>("fopen64")(path, mode);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  static const auto next = layer::Next<ssize_t (*)(int, const void*, size_t)>("write");
  if (!Fails("write", layer::PathOf(fd))) return next(fd, data, bytes);
  return Disk::Get().is_short() && bytes > 1 ? next(fd, data, bytes / 2) : -1;
}
ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = layer::Next<ssize_t (*)(int, const iovec*, int)>("writev");
  return Fails("write", layer::PathOf(fd)) ? -1 : next(fd, parts, count);
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  static const auto next = layer::Next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (!Fails("write", layer::PathOf(fd))) return next(fd, data, bytes, offset);
  return Disk::Get().is_short() && bytes > 1 ? next(fd, data, bytes / 2, offset) : -1;
}
ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  static const auto next = layer::Next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  if (!Fails("write", layer::PathOf(fd))) return next(fd, data, bytes, offset);
  return Disk::Get().is_short() && bytes > 1 ? next(fd, data, bytes / 2, offset) : -1;
}

int fsync(int fd) {
  static const auto next = layer::Next<int (*)(int)>("fsync");
  return Fails("fsync", layer::PathOf(fd)) ? -1 : next(fd);
}
int fdatasync(int fd) {
  static const auto next = layer::Next<int (*)(int)>("fdatasync");
  return Fails("fsync", layer::PathOf(fd)) ? -1 : next(fd);
}
int ftruncate(int fd, off_t bytes) {
  static const auto next = layer::Next<int (*)(int, off_t)>("ftruncate");
  return Fails("truncate", layer::PathOf(fd)) ? -1 : next(fd, bytes);
}
int ftruncate64(int fd, off64_t bytes) {
  static const auto next = layer::Next<int (*)(int, off64_t)>("ftruncate64");
  return Fails("truncate", layer::PathOf(fd)) ? -1 : next(fd, bytes);
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  static const auto next = layer::Next<int (*)(int, int, off_t, off_t)>("fallocate");
  return Fails("allocate", layer::PathOf(fd)) ? -1 : next(fd, mode, offset, bytes);
}
int rename(const char* from, const char* to) {
  static const auto next = layer::Next<int (*)(const char*, const char*)>("rename");
  return Fails("rename", layer::Absolute(AT_FDCWD, to)) ? -1 : next(from, to);
}
int renameat(int from_at, const char* from, int to_at, const char* to) {
  static const auto next = layer::Next<int (*)(int, const char*, int, const char*)>("renameat");
  return Fails("rename", layer::Absolute(to_at, to)) ? -1 : next(from_at, from, to_at, to);
}
int link(const char* from, const char* to) {
  static const auto next = layer::Next<int (*)(const char*, const char*)>("link");
  return Fails("link", layer::Absolute(AT_FDCWD, to)) ? -1 : next(from, to);
}
int mkdir(const char* path, mode_t mode) {
  static const auto next = layer::Next<int (*)(const char*, mode_t)>("mkdir");
  return Fails("mkdir", layer::Absolute(AT_FDCWD, path)) ? -1 : next(path, mode);
}
int mkdirat(int at, const char* path, mode_t mode) {
  static const auto next = layer::Next<int (*)(int, const char*, mode_t)>("mkdirat");
  return Fails("mkdir", layer::Absolute(at, path)) ? -1 : next(at, path, mode);
}

}  // extern "C"

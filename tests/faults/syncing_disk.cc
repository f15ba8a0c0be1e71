// Preloaded by tests: records everything that was fsynced below EVALD_CUT_ROOT in the folder
// EVALD_CUT_SHADOW (disk_model.h), so that power_cut can remove the rest. Data that is recorded
// before fsync returns may survive, as on a real disk.
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/file.h>

#include "tests/faults/disk_model.h"
#include "tests/faults/layer.h"

namespace {

// Writes under another name first: a kill meanwhile must not leave half a record.
void Put(const std::string& file, int from, const std::string& text) {
  static thread_local char buffer[65536];
  const std::string part =
      file + "." + std::to_string(::getpid()) + "." + std::to_string(::pthread_self());
  const long to =
      ::syscall(SYS_openat, AT_FDCWD, part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (to < 0) ::abort();
  if (from < 0 && ::syscall(SYS_write, to, text.data(), text.size()) < 0) ::abort();
  for (off_t offset = 0; from >= 0;) {
    const ssize_t got = ::pread(from, buffer, sizeof buffer, offset);
    if (got <= 0) break;
    if (::syscall(SYS_write, to, buffer, got) != got) ::abort();
    offset += got;
  }
  ::syscall(SYS_close, to);
  if (::syscall(SYS_rename, part.c_str(), file.c_str()) != 0) ::abort();
}

std::string Entries(const std::string& folder) {
  std::string text;
  DIR* stream = ::opendir(folder.c_str());
  if (stream == nullptr) return text;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    bool is_folder = false;
    if (name == "." || name == "..") continue;
    const std::string key = disk::InodeKey(::dirfd(stream), entry->d_name, &is_folder);
    if (!key.empty()) text += std::string(is_folder ? "d " : "f ") + key + " " + name + "\n";
  }
  ::closedir(stream);
  return text;
}

// One recording at a time. Otherwise a list of names that was read earlier could replace a later
// one.
class Turn {
 public:
  explicit Turn(const std::string& shadow)
      : fd_(::syscall(SYS_openat, AT_FDCWD, (shadow + "/lock").c_str(),
                      O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (::flock(static_cast<int>(fd_), LOCK_EX) != 0) {
      if (errno != EINTR) ::abort();
    }
  }
  ~Turn() { ::syscall(SYS_close, fd_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  long fd_;
};

void Remember(int fd) {
  static const std::string root = layer::Variable("EVALD_CUT_ROOT"),
                           shadow = layer::Variable("EVALD_CUT_SHADOW");
  const std::string path = layer::PathOf(fd);
  if (path != root && !layer::Below(path, root)) return;
  bool is_folder = false;
  const std::string key = disk::InodeKey(fd, "", &is_folder);
  if (key.empty()) return;
  const Turn turn(shadow);
  if (is_folder) {
    Put(shadow + "/names/" + key, -1, Entries(path));
    return;
  }
  // The descriptor may be open for writing only.
  const long from = ::syscall(SYS_openat, AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(),
                              O_RDONLY | O_CLOEXEC);
  if (from < 0) ::abort();
  Put(shadow + "/data/" + key, static_cast<int>(from), "");
  ::syscall(SYS_close, from);
}

int Sync(int fd) {
  const int saved = errno;
  Remember(fd);  // replaces fsync: this machine's disk need not be used
  errno = saved;
  return 0;
}

}  // namespace

extern "C" {
int fsync(int fd) { return Sync(fd); }
int fdatasync(int fd) { return Sync(fd); }
}

#include "checkpoint/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// A process that drops a staged checkpoint holds the exclusive lock only during a rename. This
// patience is longer than such a hold, also if the process gives up the drop.
constexpr int64_t kPatienceMicros = 5'000'000;
constexpr useconds_t kPauseMicros = 2'000;

[[noreturn]] void ThrowDropped(const fs::path& directory) {
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: this staged checkpoint is gone or is just being dropped",
                          directory.string()),
              "stage the checkpoint again");
}

void LockShared(int fd, const fs::path& directory) {
  const int64_t deadline = MonotonicMicros() + kPatienceMicros;
  while (::flock(fd, LOCK_SH | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) ThrowErrno(directory / kLeaseFile, "flock", errno);
    if (MonotonicMicros() > deadline) ThrowDropped(directory);
    ::usleep(kPauseMicros);
  }
}

}  // namespace

StagedLease::StagedLease(const fs::path& staged_directory) {
  const fs::path file = staged_directory / kLeaseFile;
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    if (errno != ENOENT) ThrowErrno(file, "open", errno);
    if (fs::is_directory(staged_directory)) return;
    ThrowDropped(staged_directory);
  }
  LockShared(fd.get(), staged_directory);
  // The folder may have been renamed after the file was opened and before it was locked.
  struct stat held{}, named{};
  if (::fstat(fd.get(), &held) != 0 || ::stat(file.c_str(), &named) != 0 ||
      held.st_ino != named.st_ino || held.st_dev != named.st_dev) {
    ThrowDropped(staged_directory);
  }
  fd_ = std::move(fd);
}

}  // namespace evald

#include "orchestrator/staging/flock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace evald {
namespace fs = std::filesystem;

bool StillNamed(int fd, const fs::path& path) {
  struct stat held{}, named{};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

std::optional<OwnerLock> OwnerLock::Try(const fs::path& path) {
  while (true) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) ThrowErrno(path, "open", errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      if (errno == EINTR) continue;
      ThrowErrno(path, "flock", errno);
    }
    // Between open and lock, the file's owner may have removed it.
    if (StillNamed(fd.get(), path)) return OwnerLock(path, std::move(fd));
  }
}

OwnerLock::~OwnerLock() {
  if (fd_) ::unlink(path_.c_str());
}

}  // namespace evald

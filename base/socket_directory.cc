#include "base/socket_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "base/own_folder.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Of sun_path (unix(7)), less "/<process id>-<number>/agent.sock"
constexpr size_t kParentBytesMax = 107 - 27;

fs::path MakeParent() {
  const fs::path parent = TmpFolder() / fmt::format("evald-{}", ::geteuid());
  MakePrivateFolder(parent, "remove it, or set TMPDIR to a folder of your own");
  return parent;
}

UniqueFd LockOf(const fs::path& directory, int flags) {
  UniqueFd lock(::open((directory / "lock").c_str(), flags | O_RDWR | O_CLOEXEC, 0600));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.reset();
  return lock;
}

// A lock counts only if its file is still there: RemoveOrphans of another owner may have removed
// the file between its creation and its locking.
bool IsThere(const UniqueFd& lock) {
  struct stat status{};
  return lock && ::fstat(lock.get(), &status) == 0 && status.st_nlink > 0;
}

// Removes folders that killed owners left: their locks can be taken. Each lock is held until its
// folder is gone, so that a new owner cannot take it in between.
void RemoveOrphans(const fs::path& parent) {
  std::error_code error, ignored;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const UniqueFd lock = LockOf(at->path(), 0);
    if (IsThere(lock)) fs::remove_all(at->path(), ignored);
  }
}

}  // namespace

SocketDirectory::SocketDirectory() {
  static std::atomic<int> next{0};
  const fs::path parent = MakeParent();
  if (parent.string().size() > kParentBytesMax) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: the path has {} bytes, expected at most {}, since a socket's path "
                            "is short",
                            parent.string(), parent.string().size(), kParentBytesMax),
                "set TMPDIR to a folder with a shorter path");
  }
  RemoveOrphans(parent);
  for (int attempt = 0;; ++attempt) {  // RemoveOrphans of another owner may take it for an orphan
    path_ = parent / fmt::format("{}-{}", ::getpid(), next++);
    if (::mkdir(path_.c_str(), 0700) == 0) lock_ = LockOf(path_, O_CREAT);
    if (IsThere(lock_)) return;
    if (attempt == 100) ThrowErrno(path_, "mkdir", errno);
  }
}

SocketDirectory::~SocketDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace evald

#include "worker/device_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/device_name.h"
#include "base/text.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr useconds_t kPollMicros = 50'000;
constexpr mode_t kFolderMode = 01777;  // any user may add a file, and remove only their own
constexpr mode_t kFileMode = 0666;

// The device's name with characters that a folder cannot hold replaced.
std::string FileName(std::string device) {
  for (char& c : device) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.')
      c = '_';
  }
  return device;
}

void MakeSharedFolder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), kFolderMode) == 0) {
    ::chmod(folder.c_str(), kFolderMode);  // whatever the umask is
  } else if (errno != EEXIST) {
    ThrowErrno(folder, "make the folder", errno);
  }
}

// The first process makes the file, all others open it: kernels refuse O_CREAT on other users'
// files in such a folder.
UniqueFd Open(const fs::path& file) {
  while (true) {
    UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd || errno != ENOENT) {
      if (!fd) ThrowErrno(file, "open", errno);
      return fd;
    }
    UniqueFd made(
        ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kFileMode));
    if (made) {
      ::fchmod(made.get(), kFileMode);
      return made;
    }
    if (errno != EEXIST) ThrowErrno(file, "make", errno);
  }
}

std::string Holder(int fd) {
  char text[64] = {};
  const ssize_t got = ::pread(fd, text, sizeof text - 1, 0);
  const std::string holder(Trim(std::string(text, static_cast<size_t>(std::max<ssize_t>(got, 0)))));
  return holder.empty() ? "another process" : "process " + holder;
}

}  // namespace

fs::path DeviceLock::DefaultFolder() {
  const char* set = std::getenv("EVALD_DEVICE_LOCKS");
  return set != nullptr && set[0] != '\0' ? fs::path(set) : fs::path("/dev/shm/evald-devices");
}

DeviceLock::DeviceLock(const fs::path& folder, const std::string& device) {
  MakeSharedFolder(folder);
  for (std::string& part : PartsOf(device)) {
    const fs::path file = folder / FileName(part);
    files_.push_back({std::move(part), file, Open(file)});
  }
}

bool DeviceLock::TryAll() {
  for (size_t i = 0; i < files_.size(); ++i) {
    while (::flock(files_[i].fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) ThrowErrno(files_[i].file, "flock", errno);
      missed_ = i;
      for (size_t taken = 0; taken < i; ++taken) ::flock(files_[taken].fd.get(), LOCK_UN);
      return false;
    }
  }
  return true;
}

bool DeviceLock::Take(std::chrono::milliseconds patience) {
  const int64_t until =
      MonotonicMicros() + std::chrono::duration_cast<std::chrono::microseconds>(patience).count();
  while (!TryAll()) {
    if (MonotonicMicros() >= until) return false;
    ::usleep(kPollMicros);
  }
  // The process id is only for HeldBy.
  const std::string pid = fmt::format("{}\n", ::getpid());
  for (const Held& held : files_) {
    const bool told = ::ftruncate(held.fd.get(), 0) == 0 &&
                      ::pwrite(held.fd.get(), pid.data(), pid.size(), 0) >= 0;
    (void)told;  // the lock is held all the same
  }
  return true;
}

std::string DeviceLock::HeldBy() const {
  const Held& held = files_[missed_];
  return fmt::format("{} is held by {} ({})", held.device, Holder(held.fd.get()),
                     held.file.string());
}

}  // namespace evald

#include "orchestrator/staging/reserve.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "orchestrator/staging/copy.h"
#include "orchestrator/staging/fingerprint.h"
#include "orchestrator/staging/free_space.h"
#include "orchestrator/staging/root.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr useconds_t kPollMicros = 20'000;
// Short: writers to the file wait during each step.
constexpr uint64_t kStepBytes = 8 << 20;

// Whether the error says that the file system has no fallocate.
bool IsUnsupported(int error_number) {
  return error_number == EOPNOTSUPP || error_number == ENOSYS;
}

bool IsShortage(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == ENOMEM;
}

// Returns 0 or an errno.
int Allocate(int fd, uint64_t begin, uint64_t bytes) {
  while (::fallocate(fd, 0, static_cast<off_t>(begin), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

SpaceTurn::SpaceTurn(const fs::path& root, const std::atomic<bool>* cancel)
    : folder_(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_) ThrowErrno(root, "open", errno);
  while (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) ThrowErrno(root, "flock", errno);
    ThrowIfCancelled(cancel);
    ::usleep(kPollMicros);
  }
}

void MakeTree(const std::vector<FileStamp>& files, const fs::path& target) {
  for (const FileStamp& file : files) {
    const fs::path path = target / file.name;
    MakeDirectories(path.parent_path());
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) ThrowErrno(path, "create", errno);
    if (::ftruncate(fd.get(), static_cast<off_t>(file.bytes)) != 0) {
      ThrowErrno(path, "set the length", errno);
    }
  }
}

Reservation::Reservation(SpaceTurn turn, std::vector<FileStamp> files, fs::path target,
                         uint64_t bytes_needed)
    : turn_(std::move(turn)), target_(std::move(target)), bytes_needed_(bytes_needed) {
  thread_ = std::thread([this, files = std::move(files)] {
    try {
      Take(files);
    } catch (...) {
      failure_ = std::current_exception();
      failed_ = true;
    }
    turn_.reset();
  });
}

Reservation::~Reservation() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Reservation::Check() const {
  if (failed_) std::rethrow_exception(failure_);
}

void Reservation::Finish() {
  if (thread_.joinable()) thread_.join();
  Check();
}

void Reservation::Take(const std::vector<FileStamp>& files) const {
  for (const FileStamp& file : files) {
    const fs::path path = target_ / file.name;
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) ThrowErrno(path, "open for writing", errno);
    for (uint64_t begin = 0; begin < file.bytes && !stop_; begin += kStepBytes) {
      const int error_number = Allocate(fd.get(), begin, std::min(kStepBytes, file.bytes - begin));
      if (IsUnsupported(error_number)) return;
      if (IsShortage(error_number)) {
        RemoveTree(target_);  // so that the error does not count it as space taken by others
        ThrowNoSpace(target_.parent_path(), bytes_needed_);
      }
      if (error_number != 0) ThrowErrno(path, "allocate", error_number);
    }
  }
}

uint64_t BytesWritten(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return 0;
  const auto bytes = static_cast<uint64_t>(info.st_size);
  uint64_t begin = 0;
  for (; begin < bytes; begin += kHashChunkBytes) {
    const off_t data = ::lseek(fd.get(), static_cast<off_t>(begin), SEEK_DATA);
    if (data < 0 || static_cast<uint64_t>(data) >= begin + kHashChunkBytes) break;
  }
  return std::min(begin, bytes);
}

}  // namespace evald

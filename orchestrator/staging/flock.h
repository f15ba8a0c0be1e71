#pragma once

#include <filesystem>
#include <optional>

#include "base/file.h"

namespace evald {

/// An exclusive hold on the file `path`, which is made for this and removed at the end. It is a
/// flock, so the kernel releases it when the process ends in any way. The file then stays, and the
/// next owner knows that the last one is dead.
class OwnerLock {
 public:
  /// Nothing if another open file holds the lock. Throws Error(kInfrastructure).
  static std::optional<OwnerLock> Try(const std::filesystem::path& path);

  OwnerLock(OwnerLock&&) = default;
  OwnerLock& operator=(OwnerLock&&) = delete;
  /// Removes the file, then releases the lock.
  ~OwnerLock();

 private:
  OwnerLock(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  UniqueFd fd_;
};

/// Whether `path` still names the open file `fd`.
bool StillNamed(int fd, const std::filesystem::path& path);

}  // namespace evald

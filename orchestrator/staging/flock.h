#pragma once

#include <filesystem>
#include <optional>

#include "base/file.h"

namespace evald {

/// An exclusive hold on the file `path`, made for the purpose and removed at the end. It is a
/// flock, so the kernel gives it back when the process ends, however it ends; the file then stays,
/// and whoever takes it next knows that its owner is dead.
class OwnerLock {
 public:
  /// Nothing when another open file holds it. Throws Error(kInfrastructure).
  static std::optional<OwnerLock> Try(const std::filesystem::path& path);

  OwnerLock(OwnerLock&&) = default;
  OwnerLock& operator=(OwnerLock&&) = delete;
  /// Removes the file, then lets go.
  ~OwnerLock();

 private:
  OwnerLock(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  UniqueFd fd_;
};

/// Whether the open file `fd` is still what `path` names.
bool StillNamed(int fd, const std::filesystem::path& path);

}  // namespace evald

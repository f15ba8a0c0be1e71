#pragma once

#include <filesystem>

#include "base/file.h"

namespace evald {

/// The name of the lock file in a staged checkpoint's folder.
inline constexpr const char* kLeaseFile = ".evald-lease";

/// A shared hold on a staged checkpoint. As long as any process has one, no process drops the
/// folder. The hold is a shared `flock`, so the kernel releases it when the process ends, however
/// it ends.
class StagedLease {
 public:
  /// Throws Error(kInfrastructure) if the folder is gone or is being dropped. A folder without a
  /// lease file is no staged checkpoint. It gives a lease that holds nothing.
  explicit StagedLease(const std::filesystem::path& staged_directory);
  StagedLease() = default;

  /// False for a default lease, and for a lease on a folder that is no staged checkpoint.
  bool held() const { return static_cast<bool>(fd_); }

 private:
  UniqueFd fd_;
};

}  // namespace evald

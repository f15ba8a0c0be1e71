#pragma once

#include <filesystem>

#include "base/file.h"

namespace evald {

/// The name of the lock file in a staged checkpoint's folder.
inline constexpr const char* kLeaseFile = ".evald-lease";

/// A shared hold on a staged checkpoint: while any process has one, nobody drops the folder. It is
/// a shared `flock`, so the kernel gives it back when the process ends, however it ends.
class StagedLease {
 public:
  /// Throws Error(kInfrastructure) when the folder is gone or is just being dropped. A folder that
  /// has no lease file (not a staged one) gives a lease that holds nothing.
  explicit StagedLease(const std::filesystem::path& staged_directory);
  StagedLease() = default;

  /// False for a default one, and for one on a folder that is not a staged one.
  bool held() const { return static_cast<bool>(fd_); }

 private:
  UniqueFd fd_;
};

}  // namespace evald

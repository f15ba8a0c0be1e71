#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace evald {

/// An exclusive hold on a device, for all processes of this host, of any user: a flock on a file
/// that is named after the device, in a folder that everybody may write. The kernel gives it back
/// when the process ends, however it ends; the files stay.
class DeviceLock {
 public:
  /// Waits up to `patience` for another process to let go. Throws Error(kInfrastructure) that names
  /// the process that holds `device` ("cuda:GPU-8f6d…").
  DeviceLock(const std::filesystem::path& folder, const std::string& device,
             std::chrono::milliseconds patience);

  /// $EVALD_DEVICE_LOCKS, or /dev/shm/evald-devices.
  static std::filesystem::path DefaultFolder();

 private:
  UniqueFd fd_;
};

}  // namespace evald

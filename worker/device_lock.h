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
  /// Of `device` ("cuda:GPU-8f6d…"), not taken yet. Throws Error(kInfrastructure) for a file that
  /// cannot be opened.
  DeviceLock(const std::filesystem::path& folder, std::string device);

  /// Waits up to `patience` for another process to let go. False when it did not.
  bool Take(std::chrono::milliseconds patience);
  /// Who holds what could not be taken, as far as is known: "cuda:GPU-8f6d… is held by process 4711
  /// (/dev/shm/evald-devices/cuda_GPU-8f6d…)".
  std::string HeldBy() const;

  /// $EVALD_DEVICE_LOCKS, or /dev/shm/evald-devices.
  static std::filesystem::path DefaultFolder();

 private:
  std::string device_;
  std::filesystem::path file_;
  UniqueFd fd_;
};

}  // namespace evald

#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace evald {

/// An exclusive hold on a device, among all processes of this host, of any user. It is a flock on a
/// file named after the device, in a folder that everybody may write to. The kernel releases it
/// when the process ends in any way; the files stay.
class DeviceLock {
 public:
  /// A lock for `device` ("cuda:GPU-8f6d…"), not taken yet. Throws Error(kInfrastructure) if its
  /// file cannot be opened.
  DeviceLock(const std::filesystem::path& folder, std::string device);

  /// Takes the lock. Waits up to `patience` if another process holds it. Returns false if that
  /// process still holds it then.
  bool Take(std::chrono::milliseconds patience);
  /// The holder of a device that could not be taken, as far as known: "cuda:GPU-8f6d… is held by
  /// process 4711 (/dev/shm/evald-devices/cuda_GPU-8f6d…)".
  std::string HeldBy() const;

  /// $EVALD_DEVICE_LOCKS, or /dev/shm/evald-devices.
  static std::filesystem::path DefaultFolder();

 private:
  std::string device_;
  std::filesystem::path file_;
  UniqueFd fd_;
};

}  // namespace evald

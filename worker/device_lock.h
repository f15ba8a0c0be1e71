#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"

namespace evald {

/// An exclusive hold on a device, among all processes of this host, of any user. It is a flock on a
/// file named after the device, in a folder that everybody may write to. A device of several GPUs
/// has a file for each. The kernel releases the locks when the process ends in any way; the files
/// stay.
class DeviceLock {
 public:
  /// A lock for `device` (base/device_name.h), not taken yet. Throws Error(kInfrastructure) if a
  /// file cannot be opened.
  DeviceLock(const std::filesystem::path& folder, const std::string& device);

  /// Takes the lock: all GPUs, or none. Waits up to `patience` if another process holds a GPU.
  /// Returns false if that process still holds it then.
  bool Take(std::chrono::milliseconds patience);
  /// The holder of a device that could not be taken, as far as known: "cuda:GPU-8f6d… is held by
  /// process 4711 (/dev/shm/evald-devices/cuda_GPU-8f6d…)".
  std::string HeldBy() const;

  /// $EVALD_DEVICE_LOCKS, or /dev/shm/evald-devices.
  static std::filesystem::path DefaultFolder();

 private:
  struct Held {
    std::string device;
    std::filesystem::path file;
    UniqueFd fd;
  };
  /// Takes all files, or none: then `missed_` is the file that another process holds.
  bool TryAll();

  std::vector<Held> files_;
  size_t missed_ = 0;
};

}  // namespace evald

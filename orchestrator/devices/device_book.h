#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace evald {

struct DeviceLimits {
  int failures_max = 3;                      ///< this many failures set a device aside
  int64_t window_us = int64_t{600'000'000};  ///< within this time
};

/// The devices that fail again and again. A device is set aside if its worker ended unasked
/// `failures_max` times within the window and finished no trial in between. No process is started
/// on it until its host comes anew. A plain value; times are microseconds of any one clock.
class DeviceBook {
 public:
  explicit DeviceBook(DeviceLimits limits = {}) : limits_(limits) {}

  /// The device's worker ended unasked. True if that sets the device aside.
  bool Failed(const std::string& device, const std::string& cause, int64_t now);
  /// The device finished a trial: earlier failures no longer count.
  void Finished(const std::string& device);
  /// The reason for which the device is set aside; nothing if it is not.
  std::optional<std::string> aside(const std::string& device) const;
  /// No device has failed lately.
  bool clean() const { return devices_.empty(); }
  /// The device may be tried again.
  void Forget(const std::string& device) { devices_.erase(device); }

 private:
  struct State {
    std::deque<int64_t> failures;  ///< times of the failures, newest last
    std::optional<std::string> aside;
  };
  DeviceLimits limits_;
  std::map<std::string, State> devices_;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace evald {

struct DeviceLimits {
  int failures_max = 3;                      ///< so many set a device aside
  int64_t window_us = int64_t{600'000'000};  ///< within so long
};

/// Which devices fail again and again. A device whose worker ended unasked `failures_max` times
/// within the window, without finishing a trial in between, is set aside: nothing is started on it
/// until its host comes anew. A plain value; times are microseconds on any one clock.
class DeviceBook {
 public:
  explicit DeviceBook(DeviceLimits limits = {}) : limits_(limits) {}

  /// The device's worker ended unasked. True when that sets the device aside.
  bool Failed(const std::string& device, const std::string& cause, int64_t now);
  /// It finished a trial: failures before count no more.
  void Finished(const std::string& device);
  /// Why the device is set aside; nothing when it is not.
  std::optional<std::string> aside(const std::string& device) const;
  /// It may be tried again.
  void Forget(const std::string& device) { devices_.erase(device); }

 private:
  struct State {
    std::deque<int64_t> failures;  ///< when, newest last
    std::optional<std::string> aside;
  };
  DeviceLimits limits_;
  std::map<std::string, State> devices_;
};

}  // namespace evald

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace evald {

/// How fast the devices of a run are, compared with one another. A device's time for documents is
/// compared with the time of other devices for documents of the same task, so wrong estimates do
/// not matter. Only tasks with short requests tell soon and evenly: the caller measures no others.
///
/// The measure is an ordinary device, slower than a quarter of the devices. So up to three quarters
/// of them may be slow, as on the first hosts of a run. A plain value; seconds.
class DeviceSpeeds {
 public:
  /// Only so many seconds of a device are measured: they show how fast it is.
  static constexpr double kMeasuredSeconds = 8;

  /// The device took `device_s` for so many documents of the task.
  void Measured(int device, size_t task, int64_t documents, double device_s);
  /// Seconds of the device that were measured.
  double measured_s(int device) const;
  /// The number of devices that were measured with the task.
  size_t devices_of(size_t task) const;
  /// The device's time as a multiple of an ordinary device's. 1 if nothing was measured.
  double slowness(int device) const;

 private:
  struct Sum {
    double documents = 0, device_s = 0;
    double each_s() const { return device_s / documents; }
  };
  struct Task {
    std::map<int, Sum> of_device;
    double ordinary_s = 0;  // of a document
  };
  static double OrdinaryOf(const Task& task);

  std::map<size_t, Task> tasks_;
  std::vector<std::map<size_t, Sum>> devices_;  // by task
  std::vector<double> measured_s_;              // by device
};

}  // namespace evald

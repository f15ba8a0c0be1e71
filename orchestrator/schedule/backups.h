#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "orchestrator/schedule/corrections.h"

namespace evald {

/// Seconds that a trial would take on a device that has nothing else to do: the lease, the longest
/// request, the shared prefixes, and all documents with all places taken. An upper estimate.
class FreshSeconds {
 public:
  explicit FreshSeconds(double lease_s) : lease_s_(lease_s) {}
  /// Documents of one task are added one after another.
  void Add(const Corrections& costs, size_t task, int64_t documents);
  double total() const { return lease_s_ + request_s_ + device_s_; }

 private:
  double lease_s_;
  double request_s_ = 0, device_s_ = 0;
  std::optional<size_t> last_;
};

/// A trial on a device, all of whose documents are begun or about to be.
struct BegunTrial {
  int64_t trial = 0;
  double since = 0;    ///< when the oldest request that has not ended was given to the engine
  double fresh_s = 0;  ///< seconds that the whole trial would take elsewhere
  /// When it was leased, or a slice of it was last reported
  double quiet = std::numeric_limits<double>::infinity();
};

/// Decides which trials an idle device computes a second time. Backups are made only when no
/// documents are open and no device has documents that are not begun. A trial gets one if its
/// device is expected to end it clearly later than another device that began it now. The first
/// commit counts (speculative execution: Dean and Ghemawat, 2004; by expected end: Zaharia et al.,
/// 2008).
///
/// A device is expected to stay as slow, compared with the others, as it has been. A request that
/// has been under way for longer than the longest that has ended is expected to take as long again,
/// so a device that shows no sign of life is late too. "Clearly later" means more than twice as
/// long, and by more than `least_s`.
///
/// Both rest on heartbeats, which a device of another host may make up. So a trial also gets a
/// backup if no slice of it has been reported for `kQuietFactor` times as long as the trial would
/// take elsewhere, with a least and a most time.
///
/// The executor reports what each device has begun, and measures trials that ended. It asks Next
/// for a device that got nothing else, leases the backup, and then forgets or reports anew the
/// device that the backup was made from. A plain value; times are seconds of any one clock. With n
/// devices a decision takes log n steps; a report takes as many, and one for each trial in it.
class Backups {
 public:
  static constexpr double kLateFactor = 2;
  static constexpr double kQuietFactor = 8, kQuietLeastSeconds = 60, kQuietMostSeconds = 1800;
  /// The most backups of one trial, one after another.
  static constexpr int kBackupsMax = 2;

  explicit Backups(double least_s = 1) : least_s_(least_s) {}

  /// The device took `device_s` for work that a device was expected to take `expected_s` for.
  void Measured(int device, double expected_s, double device_s);
  /// The device's time for the same work, as a multiple of the mean of all devices.
  double slowness(int device) const;

  /// The seconds without a slice after which a trial gets a backup. `fresh_s` as in BegunTrial.
  double quiet_s(int device, double fresh_s) const;

  /// The trials that the device has at `now` and that have no backup. Replaces its earlier report.
  void Report(double now, int device, const std::vector<BegunTrial>& begun);
  void Forget(int device);

  struct Late {
    double at = 0;  ///< when the backup falls due
    int64_t trial = 0;
    int device = 0;
    bool operator<(const Late& other) const {
      return std::tie(at, trial, device) < std::tie(other.at, other.trial, other.device);
    }
  };
  /// The trial whose backup has been due for longest and that `helper` does not hold itself.
  /// Reports may be out of date: Next calls `report` for that trial's device, and for the device
  /// whose report is oldest. `report` must Report the device anew.
  std::optional<Late> Next(double now, int helper, const std::function<void(int device)>& report);
  /// When the next backup falls due, unless a report changes that. Nothing if none will.
  std::optional<double> next_at() const;

 private:
  struct Device {
    double expected_s = 0, device_s = 0;  // measured
    double reported = 0;
    std::optional<Late> first;  // the first trial that is due for one
  };
  Device& At(int device);
  std::optional<Late> First(double now, int helper) const;

  double least_s_;
  double expected_s_ = 0, device_s_ = 0;  // of all devices
  std::vector<Device> devices_;
  std::set<Late> order_;                      // the first trial of each device
  std::set<std::pair<double, int>> reports_;  // devices in order_, by the time of their report
};

}  // namespace evald

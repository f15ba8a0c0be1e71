#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "orchestrator/schedule/corrections.h"

namespace evald {

/// What a trial would take on a device that has nothing else to do: a lease, its longest request,
/// and all of its documents with all places taken, what they share before them. Seconds; an
/// estimate from above.
class FreshSeconds {
 public:
  explicit FreshSeconds(double lease_s) : lease_s_(lease_s) {}
  /// Documents of one task stand together.
  void Add(const Corrections& costs, size_t task, int64_t documents);
  double total() const { return lease_s_ + request_s_ + device_s_; }

 private:
  double lease_s_;
  double request_s_ = 0, device_s_ = 0;
  std::optional<size_t> last_;
};

/// A trial that a device has, all of it begun or about to be.
struct BegunTrial {
  int64_t trial = 0;
  double since = 0;    ///< when its oldest request that has not ended was given to the engine
  double fresh_s = 0;  ///< what all of it would take elsewhere
};

/// Decides what is computed a second time, on a device that is idle while nothing is open and
/// nobody has anything that is not begun: what its device is expected to end clearly later than a
/// device would that began now. Whichever commits first counts (speculative execution: Dean and
/// Ghemawat, 2004; by expected end rather than for all that is left: Zaharia et al., 2008).
///
/// A device is expected to be as slow as it has been, over the others. Of a request that is under
/// way for longer than the longest that has ended, it is expected that it will be for as long
/// again: so what shows no sign of life is late too. Clearly later: more than twice as long, and by
/// more than `least_s`.
///
/// Whoever executes it reports what each device has begun and measures trials that ended, asks Next
/// for a device that got nothing else, leases the copy, and forgets or reports anew whose trial it
/// was. A plain value; seconds of any one clock. A decision takes log n steps for n devices, a
/// report as many and one for each trial in it.
class Doubling {
 public:
  static constexpr double kLateFactor = 2;
  /// Copies of one trial, one after another.
  static constexpr int kCopiesMax = 2;

  explicit Doubling(double least_s = 1) : least_s_(least_s) {}

  /// The device took `device_s` for what any was expected to take `expected_s` for.
  void Measured(int device, double expected_s, double device_s);
  /// How many times as long as any of them the device takes.
  double slowness(int device) const;

  /// At `now` the device has these, of which there is no copy. Takes the place of what it reported
  /// before.
  void Report(double now, int device, const std::vector<BegunTrial>& begun);
  void Forget(int device);

  struct Late {
    double at = 0;  ///< since when a copy is due
    int64_t trial = 0;
    int device = 0;
    bool operator<(const Late& other) const {
      return std::tie(at, trial, device) < std::tie(other.at, other.trial, other.device);
    }
  };
  /// The trial whose copy has been due for longest and that `helper` does not have itself. What was
  /// reported may be out of date: `report` is called for the device that it would be of, and for
  /// the one that was reported least lately, and has to Report it anew.
  std::optional<Late> Next(double now, int helper, const std::function<void(int device)>& report);
  /// When the next copy will be due; nothing when none will without another report.
  std::optional<double> next_at() const;

 private:
  struct Device {
    double expected_s = 0, device_s = 0;  // measured
    double reported = 0;
    std::optional<Late> first;  // of what it reported
  };
  Device& At(int device);
  std::optional<Late> First(double now, int helper) const;

  double least_s_;
  double expected_s_ = 0, device_s_ = 0;  // of all devices
  std::vector<Device> devices_;
  std::set<Late> order_;                      // of each device the first
  std::set<std::pair<double, int>> reports_;  // of devices with any in order_
};

}  // namespace evald

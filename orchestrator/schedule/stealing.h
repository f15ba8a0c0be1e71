#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "orchestrator/schedule/open_work.h"

namespace evald {

/// Documents at the end of a slice that a device has and is believed not to have begun.
struct WaitingDocuments {
  int64_t trial = 0;
  int slice = 0;
  size_t task = 0;
  DocumentRange documents;  ///< up to the end of the slice
  bool operator==(const WaitingDocuments&) const = default;
};

/// Slices of a device that are to end early, each at the first of the documents named here.
struct Theft {
  int device = 0;
  std::vector<WaitingDocuments> documents;
};

/// Decides whose documents an idle device gets when none are open. This is work stealing (Blumofe
/// and Leiserson, 1999), but from the victim with most to do, which is known here.
///
/// The executor reports what waits on each device. It asks Next when a device has a place free and
/// the policy has nothing for it. It then has the victim end its slices early, and puts what comes
/// back into the open work, from which the policy gives it out. A victim that has begun some of it
/// meanwhile gives back the rest, or nothing.
///
/// The thief computes a task's shared prefix once more. So "most to do" is counted without that
/// prefix, and only the work beyond it is halved. Otherwise work would move back and forth for the
/// prefix alone.
///
/// Between two reports a device is believed to work off one second a second, so a report needs no
/// change as time passes. A plain value; seconds of any one clock. With n devices a report and a
/// decision take log n steps, and one for each of a device's slices.
class Stealing {
 public:
  /// Less than `least_s` of device time is not worth a lease.
  explicit Stealing(double least_s) : least_s_(least_s) {}

  /// The documents that wait on the device at `now`, in the order in which it will begin them.
  /// Replaces its earlier report. Their cost is what `work` expects now.
  void Report(double now, int device, std::vector<WaitingDocuments> waiting, const OpenWork& work);
  /// The device is gone, or has nothing waiting.
  void Forget(int device);

  /// Seconds of work that wait on the device furthest behind, less the prefix that a thief would
  /// compute again.
  double most_waiting_s(double now) const {
    return order_.empty() ? 0 : std::max(0.0, order_.rbegin()->first - now);
  }

  /// The half that would begin last of the work that waits on the device furthest behind; at least
  /// one document. Nothing if no device but `thief` has `least_s` waiting.
  std::optional<Theft> Next(double now, int thief) const;

 private:
  struct Waiting {
    WaitingDocuments documents;
    double document_s = 0;  // seconds of each document
    double prefix_s = 0;    // seconds of the task's prefix
  };
  struct Device {
    double all_begun_at = 0;
    double prefix_s = 0;  // prefix of the work that waits last
    double worth_until() const { return all_begun_at - prefix_s; }
    std::vector<Waiting> waiting;
  };

  double least_s_;
  std::vector<Device> devices_;
  std::set<std::pair<double, int>> order_;  // worth_until and device, for devices with waiting work
};

}  // namespace evald

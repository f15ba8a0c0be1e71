#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "orchestrator/schedule/open_work.h"

namespace evald {

/// Documents at the end of a slice that a device was given and is believed not to have begun.
struct WaitingDocuments {
  int64_t trial = 0;
  int slice = 0;
  size_t task = 0;
  DocumentRange documents;  ///< up to the end of the slice
  bool operator==(const WaitingDocuments&) const = default;
};

/// Slices of a device that are to end early: each at the first of the documents named here.
struct Theft {
  int device = 0;
  std::vector<WaitingDocuments> documents;
};

/// Decides whose documents an idle device gets when none are open (work stealing, as Blumofe and
/// Leiserson, 1999, but from the victim with most to do, which is known here, rather than from
/// any).
///
/// Whoever executes it reports what each device has waiting, asks Next when a device has a place
/// free and the policy has nothing for it, has the victim end its slices early, and puts what it
/// gives back into the open work, from which the policy gives it out again. A victim that has begun
/// some of it in the meantime gives back the rest, or nothing.
///
/// The thief computes what a task's documents share once more. The device with most to do is
/// therefore the one with most beyond that, and what is left after it is halved: else work would go
/// from one to the other for the prefix alone.
///
/// Between two reports a device is believed to work off one second a second, so that a report stays
/// good for a while and nothing has to be changed as time goes by. A plain value; seconds of any
/// one clock. A report and a decision take log n steps for n devices, and as many as the slices of
/// one.
class Stealing {
 public:
  /// Less than `least_s` of device time is not worth a lease.
  explicit Stealing(double least_s) : least_s_(least_s) {}

  /// At `now`, the device has this waiting, in the order in which it will begin it. Takes the place
  /// of what it reported before. What the documents take is expected as `work` says now.
  void Report(double now, int device, std::vector<WaitingDocuments> waiting, const OpenWork& work);
  /// The device is gone, or has nothing waiting.
  void Forget(int device);

  /// Seconds of work that the device that is furthest behind has waiting, less what another would
  /// compute again for it.
  double most_waiting_s(double now) const {
    return order_.empty() ? 0 : std::max(0.0, order_.rbegin()->first - now);
  }

  /// The half that would begin last of what the device that is furthest behind has waiting, and one
  /// document at least; nothing when no device but `thief` has `least_s` waiting.
  std::optional<Theft> Next(double now, int thief) const;

 private:
  struct Waiting {
    WaitingDocuments documents;
    double document_s = 0;  // of each
    double prefix_s = 0;    // of its task
  };
  struct Device {
    double all_begun_at = 0;
    double prefix_s = 0;  // of what waits last
    double worth_until() const { return all_begun_at - prefix_s; }
    std::vector<Waiting> waiting;
  };

  double least_s_;
  std::vector<Device> devices_;
  std::set<std::pair<double, int>>
      order_;  // worth_until and device, of those that have anything waiting
};

}  // namespace evald

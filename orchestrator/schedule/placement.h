#pragma once

#include <optional>

namespace evald {

/// A run, and an idle device of a host that does not have its checkpoint in memory.
struct StagingCase {
  /// Devices that are idle or work for the run, on hosts that have its checkpoint or are getting
  /// it.
  int devices_beside = 0;
  /// Device seconds of the run's open work. No value before the run is planned.
  std::optional<double> open_s;
  /// Expected seconds for staging the checkpoint on this host.
  double stage_s = 0;
};

/// A load pays only if the work would otherwise take or wait longer than this many seconds.
inline constexpr double kWorthALoadSeconds = 3;

/// True if the checkpoint should be staged on the host. Always true if no device beside can work on
/// the run. Otherwise true only if the devices beside need longer for the open work than staging
/// and kWorthALoadSeconds together. So a small run stays on the hosts that have its checkpoint.
/// False for a run that is not planned yet: the plan needs one worker that loads the checkpoint,
/// and a device beside can do that. A pure function.
bool WorthStaging(const StagingCase& at);

/// How many hosts are given a checkpoint at the same time, and how long a copy takes. Copies may
/// share one link: then the first of them arrives soonest if they are made one after another. Or
/// each has a link of its own: then all are made at once. Which of the two it is shows in their
/// times. So the number begins with one and doubles as long as copies beside each other take about
/// as long as fewer did; if they take longer, it falls back by half, and doubles again only after
/// some copies more. A plain value.
class CopyPace {
 public:
  /// The largest number of copies that should be under way.
  int at_once() const { return at_once_; }
  /// The rate to expect of the next copy; a guess before the first one.
  double bytes_per_s() const { return bytes_per_s_; }
  /// A copy of so many bytes has ended; `under_way` copies were being made then, this one included.
  void Ended(int under_way, double bytes, double seconds);

 private:
  /// Copies beside each other that take at most so many times as long as fewer cost nothing.
  static constexpr double kLonger = 1.4;
  int at_once_ = 1;
  int fast_ = 0;                 // the largest number that was found to cost nothing
  double fast_bytes_per_s_ = 0;  // the rate of each copy then
  double bytes_per_s_ = 1e9;
  int wait_ = 0;  // copies to end before the number doubles again
  int next_wait_ = 4;
};

}  // namespace evald

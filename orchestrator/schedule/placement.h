#pragma once

#include <optional>

namespace evald {

/// A run, and an idle device of a host that does not have its checkpoint in memory.
struct StagingCase {
  /// Devices that are idle or work for the run, on hosts that have its checkpoint.
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

}  // namespace evald

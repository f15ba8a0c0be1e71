#pragma once

#include <optional>

namespace evald {

/// A run, and an idle device of a host that does not have its checkpoint in memory.
struct StagingCase {
  /// Devices that are idle or work for the run, on hosts that have its checkpoint.
  int devices_beside = 0;
  /// Device seconds of the run's open work. Nothing before the run is planned.
  std::optional<double> open_s;
  /// Expected seconds for staging the checkpoint on this host.
  double stage_s = 0;
};

/// Loading a checkpoint pays from this much work on, wherever the checkpoint is staged.
inline constexpr double kWorthALoadSeconds = 3;

/// Whether to stage the checkpoint on the host. Not if the devices of the other hosts would end the
/// run before the checkpoint arrived, so small runs stay where their checkpoint is. A run that is
/// not planned yet counts as small: planning it takes one load from memory. A pure function.
bool WorthStaging(const StagingCase& at);

}  // namespace evald

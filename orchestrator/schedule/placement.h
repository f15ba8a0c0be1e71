#pragma once

#include <optional>

namespace evald {

/// A run, and an idle device of a host that does not have its checkpoint in memory.
struct StagingCase {
  /// Devices of hosts that have it, that are idle or work for the run.
  int devices_beside = 0;
  /// Device seconds of the run that nobody works on; nothing before it is planned.
  std::optional<double> open_s;
  /// What staging it on this host is expected to take.
  double stage_s = 0;
};

/// Loading a checkpoint is worth it for so much work, wherever it is staged.
inline constexpr double kWorthALoadSeconds = 3;

/// Whether the host should have the checkpoint: not for a run that the devices beside would be
/// through with by the time it is there, so small runs go where their checkpoint is. A run that is
/// not planned yet is small until more is known: that takes one load from memory. A pure function.
bool WorthStaging(const StagingCase& at);

}  // namespace evald

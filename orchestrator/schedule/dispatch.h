#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace evald {

/// A run as the dispatcher sees it.
struct DispatchRun {
  int64_t number = 0;  ///< older runs have smaller ones
  int priority = 0;    ///< higher goes first
  std::string user;
};

/// Device seconds that the runs of each user had lately.
using DeviceUse = std::map<std::string, double>;

/// A user who holds a device keeps it until another user of the same priority has had this many
/// device seconds less. Changing checkpoints costs a load.
inline constexpr double kDispatchQuantumSeconds = 30;

/// Chooses the run that a free device computes a trial of. All `runs` have work for the device;
/// `current` is the run that it worked for last (0: none). Order: the highest priority; then the
/// user who has had the least; of that user's runs the current one, else the oldest. A pure
/// function. Nothing if there are no runs.
std::optional<int64_t> ChooseRun(const std::vector<DispatchRun>& runs, const DeviceUse& use,
                                 int64_t current);

}  // namespace evald

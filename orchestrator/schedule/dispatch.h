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

/// Device seconds that each user's runs have had lately.
using DeviceUse = std::map<std::string, double>;

/// A user who holds a device keeps it until somebody else of the same priority has had this much
/// less of the devices: changing checkpoints costs a load.
inline constexpr double kDispatchQuantumSeconds = 30;

/// Which of `runs`, all of which have work for it, a device that is free for a trial goes to.
/// `current` is the run that it worked for last (0: none). The highest priority first; among users
/// the one who has had the least; of one user's runs the one the device is at, else the oldest. A
/// pure function. Nothing for no runs.
std::optional<int64_t> ChooseRun(const std::vector<DispatchRun>& runs, const DeviceUse& use,
                                 int64_t current);

}  // namespace evald

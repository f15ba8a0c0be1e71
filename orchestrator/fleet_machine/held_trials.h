#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "orchestrator/fleet_machine/run_view.h"

namespace evald {

/// The trials that a worker holds, in ascending order. A worker holds few, and they change with
/// every lease.
class HeldTrials {
 public:
  bool insert(const HeldTrial& trial) {
    const auto at = std::lower_bound(trials_.begin(), trials_.end(), trial);
    if (at != trials_.end() && *at == trial) return false;
    trials_.insert(at, trial);
    return true;
  }
  /// False if it was not there.
  bool erase(const HeldTrial& trial) {
    const auto at = std::lower_bound(trials_.begin(), trials_.end(), trial);
    if (at == trials_.end() || *at != trial) return false;
    trials_.erase(at);
    return true;
  }
  /// Takes out the trials of a run.
  std::vector<HeldTrial> TakeOf(int64_t run) {
    std::vector<HeldTrial> taken;
    std::copy_if(trials_.begin(), trials_.end(), std::back_inserter(taken),
                 [run](const HeldTrial& trial) { return trial.run == run; });
    std::erase_if(trials_, [run](const HeldTrial& trial) { return trial.run == run; });
    return taken;
  }
  void clear() { trials_.clear(); }
  bool empty() const { return trials_.empty(); }
  size_t size() const { return trials_.size(); }
  auto begin() const { return trials_.begin(); }
  auto end() const { return trials_.end(); }
  using const_iterator = std::vector<HeldTrial>::const_iterator;
  using value_type = HeldTrial;
  bool operator==(const HeldTrials&) const = default;

 private:
  std::vector<HeldTrial> trials_;
};

}  // namespace evald

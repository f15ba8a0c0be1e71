#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "orchestrator/schedule/policy.h"

namespace evald {

/// Trials that were planned before the first was leased. Documents that come back belong to no
/// trial: they are still open after the plan is worked off.
class PlannedTrials {
 public:
  void Add(std::vector<Cut> trial) { trials_.push_back(std::move(trial)); }
  bool empty() const { return trials_.empty(); }
  /// Takes all trials that are left, to be planned anew.
  std::deque<std::vector<Cut>> TakeAll() { return std::exchange(trials_, {}); }

  /// The next trial, without documents that are no longer open. Empty at the end.
  std::vector<Cut> Next(const OpenWork& work) {
    while (!trials_.empty()) {
      std::vector<Cut> trial = std::move(trials_.front());
      trials_.pop_front();
      for (Cut& cut : trial) cut.documents = std::min(cut.documents, work.open(cut.task));
      std::erase_if(trial, [](const Cut& cut) { return cut.documents == 0; });
      if (!trial.empty()) return trial;
    }
    return {};
  }

 private:
  std::deque<std::vector<Cut>> trials_;
};

}  // namespace evald

#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "orchestrator/schedule/policy.h"

namespace evald {

/// Puts a part of a task into a trial, which holds each task once.
inline void AddCut(std::vector<Cut>* trial, const Cut& cut) {
  for (Cut& other : *trial) {
    if (other.task != cut.task) continue;
    other.documents += cut.documents;
    return;
  }
  trial->push_back(cut);
}

/// Trials that were planned before the first was leased. Documents that came back since are appended as
/// trials of their own, so that none is left when the plan has been worked off.
class PlannedTrials {
 public:
  void Add(std::vector<Cut> trial) { trials_.push_back(std::move(trial)); }
  bool empty() const { return trials_.empty(); }

  /// The next trial, without what is not open any more; empty at the end.
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

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/schedule/open_work.h"

namespace evald {

/// What planning needs to know of a task.
struct PlanTask {
  std::string name;
  std::vector<DocumentRange> open;  ///< documents still to be generated, in order
  double cost_per_document = 1;     ///< any unit, the same for all tasks: tokens
  bool slow_scoring = false;        ///< its metric runs programs
};

/// One slice of a trial: documents of `tasks[task]`.
struct PlanSlice {
  size_t task = 0;
  DocumentRange documents;
};

/// The unit that is leased; at most one slice of each task. Its place in the plan is its rank.
struct PlanTrial {
  std::vector<PlanSlice> slices;
  double cost = 0;
};

struct PlanOptions {
  int workers = 1;
  int trials_per_worker = 16;         ///< aimed at; more are cheaper to lose, fewer cheaper to lease
  int64_t documents_per_slice_max = 256;  ///< a slice is what scoring waits for
};

/// Cuts tasks into trials: large tasks are split into slices of about equal cost, small ones share a
/// trial. Tasks whose scoring is slow come first, in trials that begin small, then the larger cost. A
/// pure function: equal arguments, equal plan. Every open document is in exactly one slice.
std::vector<PlanTrial> PlanTrials(const std::vector<PlanTask>& tasks, const PlanOptions& options);

}  // namespace evald

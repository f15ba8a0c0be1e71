#pragma once

#include <vector>

#include "orchestrator/schedule/policy.h"

namespace evald {

/// All open documents of the first dataset, in the run's order, that has any. This is the trial of
/// executors that take a dataset as one job.
std::vector<Cut> NextDataset(const OpenWork& work);

}  // namespace evald

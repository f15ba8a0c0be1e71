#pragma once

#include <vector>

#include "orchestrator/schedule/policy.h"

namespace evald {

/// All that is open of the first dataset, in the run's order, of which anything is: the trial of
/// executors that take a dataset as one job.
std::vector<Cut> NextDataset(const OpenWork& work);

}  // namespace evald

#pragma once

#include <vector>

#include "orchestrator/verdict/reports.h"
#include "orchestrator/verdict/result_set.h"

namespace evald {

/// A few wrong answers of each task for the page, those that the baseline had right first. Only
/// metrics of right or wrong; texts are cut. Tasks without samples have none. `baseline` may be
/// null.
std::vector<Example> WrongAnswers(ResultSet* candidate, ResultSet* baseline);

}  // namespace evald

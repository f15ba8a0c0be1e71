#pragma once

#include <vector>

#include "orchestrator/verdict/reports.h"
#include "orchestrator/verdict/result_set.h"

namespace evald {

/// A few wrong answers of each task for the page, first those that the baseline had right. Only for
/// right-or-wrong metrics. Texts are cut. Tasks without samples have none. `baseline` may be null.
std::vector<Example> WrongAnswers(ResultSet* candidate, ResultSet* baseline);

}  // namespace evald

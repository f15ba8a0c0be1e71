#pragma once

#include <string>
#include <vector>

#include "orchestrator/run_machine/run_machine.h"

namespace evald {

/// Equal for failures of one cause: the text without its words that hold a path or a digit, such as
/// the file that could not be written or the numbers of documents.
std::string CauseKey(const std::string& text);

/// One line for each cause, with what it stops: "task gsm8k, documents 0 to 12: scoring, and 15
/// more parts: <the first of its texts>".
std::vector<std::string> ByCause(const std::vector<Missing>& all);

}  // namespace evald

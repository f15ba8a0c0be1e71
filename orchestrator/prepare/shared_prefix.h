#pragma once

#include <cstdint>

#include "prepared/prepared_task.h"

namespace evald {

/// Tokens that all prompts of a task begin with: instructions and few-shot examples. An engine that
/// keeps prefixes computes them once a trial instead of once a document. Measured on an even sample
/// of the documents, so it may be slightly more than all of them share. Without tokens, four bytes
/// count as a token.
double SharedPrefixTokens(const PreparedTask& task, int64_t sample = 32);

}  // namespace evald

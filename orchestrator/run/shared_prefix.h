#pragma once

#include <cstdint>

#include "prepared/prepared_task.h"

namespace evald {

/// Tokens that all prompts of a task begin with: instructions and few-shot examples. What an engine
/// that keeps a prefix computes once for a trial rather than for each of its documents. Of a sample
/// of the documents, evenly taken, so a few more than all of them share at most; without tokens a
/// token is four bytes.
double SharedPrefixTokens(const PreparedTask& task, int64_t sample = 32);

}  // namespace evald

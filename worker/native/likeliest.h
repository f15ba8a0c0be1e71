#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/token_watch.h"

namespace evald::native {

/// The `count` largest logits above minus infinity, largest first and among equal ones the lower id
/// first, as log-probabilities: logit - maximum - log_total. None may be NaN.
std::vector<TokenLogProbability> Likeliest(const float* logits, int64_t vocab_size, int count,
                                           double maximum, double log_total);

/// The report on `token` from a whole row of logits. NaN and no likeliest tokens if the logits have
/// no softmax.
TokenReport ReportOn(int32_t token, const float* logits, int64_t vocab_size, int top);

}  // namespace evald::native

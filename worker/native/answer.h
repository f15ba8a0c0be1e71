#pragma once

#include <cstdint>

#include "evald/request.h"

namespace evald::native {

/// What is wanted of the logits after a token: the log-probability of a target, or the next token.
struct Wish {
  int32_t target = -1;                       ///< -1: the next token
  const SamplingParams* sampling = nullptr;  ///< how it is chosen; null or not do_sample: greedily
  double uniform = 0;                        ///< in [0, 1), what is drawn with
};

/// The answer to a Wish. Devices give these, so that the logits stay where they were computed.
struct Answer {
  int32_t token = 0;           ///< the chosen one; for a target the first of the likeliest
  double log_probability = 0;  ///< of the target
  bool finite = true;          ///< all logits are; else the rest means nothing
};

}  // namespace evald::native

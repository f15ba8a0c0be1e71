#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/generation_config.h"

namespace evald::native {

/// What is wanted of the logits after a token: the log-probability of a target, or the next token.
struct Wish {
  int32_t target = -1;  ///< -1: the next token
  /// How it is chosen; null or not do_sample: greedily. Devices know temperature, top_k and top_p.
  const GenerationSettings* settings = nullptr;
  double uniform = 0;   ///< in [0, 1), what is drawn with
  bool logits = false;  ///< the logits themselves are wanted: the caller chooses
};

/// The answer to a Wish. Devices give these, so that the logits stay where they were computed.
struct Answer {
  int32_t token = 0;           ///< the chosen one; for a target the first of the likeliest
  double log_probability = 0;  ///< of the target
  bool finite = true;          ///< all logits are; else the rest means nothing
  std::vector<float> logits;   ///< [vocab_size], where they were wished for
};

}  // namespace evald::native

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
  /// The chosen one; for a target the first of the likeliest. Greedily as torch.argmax: the first
  /// NaN, where there is one. Of undefined logits: for a target 0, as that of a row of NaN; one
  /// that is drawn means nothing.
  int32_t token = 0;
  double log_probability = 0;  ///< of the target; NaN of undefined logits
  bool defined =
      true;  ///< the logits have a softmax: no NaN, no plus infinity, one above minus infinity
  std::vector<float> logits;  ///< [vocab_size], where they were wished for
};

}  // namespace evald::native

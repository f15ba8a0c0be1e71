#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/generation_config.h"
#include "worker/engine/token_watch.h"

namespace evald::native {

/// The answer wanted from the logits after a token: the log-probability of a target, or the next
/// token.
struct Wish {
  int32_t target = -1;  ///< -1: the next token
  /// How the next token is chosen. Null, or not do_sample: greedily. Devices know temperature,
  /// top_k and top_p.
  const GenerationSettings* settings = nullptr;
  double uniform = 0;   ///< in [0, 1), for the draw
  bool logits = false;  ///< return the logits themselves: the caller chooses
  /// Without `logits`: at least 0 asks for the log-probability of a next token too, and for so many
  /// of the likeliest tokens
  int top = TokenWatch::kNoLogProbabilities;
};

/// The answer to a Wish. Devices compute it, so that the logits need not leave the device.
struct Answer {
  /// The chosen token; for a target, the first of the likeliest tokens. Greedy choice is
  /// torch.argmax: the first NaN, if there is one. If the logits are undefined (`defined`
  /// is false): 0 if the wish has a target, as in a row of NaN; without meaning if a token was
  /// drawn.
  int32_t token = 0;
  /// Of the target, or of a next token where the wish says `top`; NaN for undefined logits
  double log_probability = 0;
  /// The logits have a softmax: no NaN, no plus infinity, one above minus infinity
  bool defined = true;
  std::vector<float> logits;             ///< [vocab_size], if the wish asked for them
  std::vector<TokenLogProbability> top;  ///< as in TokenReport
};

}  // namespace evald::native

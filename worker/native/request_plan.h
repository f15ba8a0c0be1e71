#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/generation_config.h"
#include "evald/request.h"

namespace evald::native {

/// Tokens of which the last ones are scored: the logits after tokens[score_from + i] give the
/// probability of targets[i].
struct ScoreWindow {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  int score_from = 0;
};

/// A request as token sequences, cut to the context length as lm-evaluation-harness's `hf` backend
/// does (lm_eval 0.4.13, HFLM).
struct RequestPlan {
  GenerationSettings settings;       ///< kGenerateUntil: those in force
  int tokens_max = 0;                ///< kGenerateUntil: that may be generated
  std::vector<int32_t> prompt;       ///< kGenerateUntil
  std::vector<ScoreWindow> windows;  ///< one for kLoglikelihood, any number for the rolling kind
  int tokens_in = 0;                 ///< prompt tokens after truncation; for windows their contexts
  int tokens_out = 0;                ///< scored tokens
  int truncated = 0;                 ///< tokens dropped from the left
};

struct PlanLimits {
  int max_length = 0;         ///< tokens of context
  int64_t vocab_size = 0;     ///< tokens are below this
  int32_t prefix_token = -1;  ///< BOS or EOS, before the first rolling window; -1 for none
  /// Positions that the model has angles for; 0: any number. A checkpoint's max_new_tokens, and a
  /// request's max_length, may go beyond max_length.
  int64_t positions_max = 0;
  /// Positions up to which the text of a generation is that of transformers' generate(); 0: any
  /// number (ModelConfig::generation_positions).
  int64_t generation_positions = 0;
  GenerationConfig generation;  ///< the checkpoint's settings
};

/// "document 17, request 2".
std::string RequestName(const Request& request);

/// Throws Error(kInput) naming the document for what can never be answered: an empty prompt, a
/// continuation longer than the context, no room for a prompt beside max_gen_toks, a prompt that
/// fills max_length, a text longer than generation_positions, a token outside the vocabulary,
/// settings that are none or are not served.
RequestPlan PlanRequest(const Request& request, const PlanLimits& limits);

}  // namespace evald::native

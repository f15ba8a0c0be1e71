#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/generation_config.h"
#include "evald/request.h"
#include "worker/engine/score_window.h"

namespace evald::native {

/// A request as token sequences, cut to the context length like in lm-evaluation-harness's `hf`
/// backend (lm_eval 0.4.13, HFLM).
struct RequestPlan {
  GenerationSettings settings;       ///< kGenerateUntil: the settings in force
  int tokens_max = 0;                ///< kGenerateUntil: the most tokens to generate
  std::vector<int32_t> prompt;       ///< kGenerateUntil
  std::vector<ScoreWindow> windows;  ///< kLoglikelihood: one; kLoglikelihoodRolling: any number
  /// kGenerateUntil: tokens of the prompt after truncation. With windows: tokens that are not
  /// scored
  int tokens_in = 0;
  int tokens_out = 0;  ///< scored tokens
  int truncated = 0;   ///< tokens dropped from the left
};

struct PlanLimits {
  int max_length = 0;         ///< tokens of context
  int64_t vocab_size = 0;     ///< tokens are below this
  int32_t prefix_token = -1;  ///< BOS or EOS, put before the first rolling window; -1: none
  /// Number of positions that the model can rotate (max_position_embeddings with rope scaling
  /// 'dynamic'); 0: no limit. A text may be longer than `max_length` above: a checkpoint's
  /// max_new_tokens and the max_length of generation_kwargs may ask for more.
  int64_t positions_max = 0;
  /// Up to this many positions, evald generates the same text as transformers' generate(). Longer
  /// requests are refused. 0: no limit (ModelConfig::generation_positions).
  int64_t generation_positions = 0;
  GenerationConfig generation;  ///< the checkpoint's settings
};

/// "document 17, request 2".
std::string RequestName(const Request& request);

/// If the request can never be answered, throws Error(kInput), which names the document. Reasons:
/// an empty prompt, a continuation longer than the context, a max_gen_toks that leaves no token of
/// the context for the prompt, a prompt that fills max_length, a text longer than positions_max or
/// generation_positions, a token outside the vocabulary, invalid or unsupported settings.
RequestPlan PlanRequest(const Request& request, const PlanLimits& limits);

}  // namespace evald::native

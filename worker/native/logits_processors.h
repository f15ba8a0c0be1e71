#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/generation_config.h"

namespace evald::native {

/// The input of transformers' logits processors.
struct TokenHistory {
  const std::vector<int32_t>& tokens;  ///< the prompt, then the generated tokens
  size_t prompt = 0;                   ///< tokens of the prompt after it was cut
  int64_t tokens_max = 0;              ///< tokens at which generation ends, including the prompt
};

/// Changes the logits of the token after `history` like transformers 5.23 before its choice
/// (generation/logits_process.py, in the order of GenerationMixin._get_logits_processor): biases,
/// penalties, n-grams, bad words, least lengths, forced and suppressed tokens. Processors
/// that act only if tokens are drawn are in Masses (sampler.h). Computes in fp32, like
/// transformers.
void ProcessLogits(const GenerationSettings& settings, const TokenHistory& history,
                   std::vector<float>* logits);

/// The next token: the first of the largest processed logits, or one drawn with `uniform`. Throws
/// Error(kInput) if none is left to draw.
int32_t ChooseToken(const GenerationSettings& settings, const TokenHistory& history, double uniform,
                    std::vector<float> logits);

}  // namespace evald::native

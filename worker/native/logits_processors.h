#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/generation_config.h"

namespace evald::native {

/// What transformers' logits processors look at.
struct TokenHistory {
  const std::vector<int32_t>& tokens;  ///< the prompt, then what has been generated
  size_t prompt = 0;                   ///< tokens of the prompt, as it was cut
  int64_t tokens_max = 0;              ///< tokens with which generation ends, prompt included
};

/// Changes the logits of the token after `history`, as transformers 5.23 does before it chooses
/// (generation/logits_process.py, in the order of GenerationMixin._get_logits_processor): biases,
/// penalties, n-grams, bad words, least lengths, forced and suppressed tokens. What only sampling
/// has is left to Masses (sampler.h). In fp32, as there.
void ProcessLogits(const GenerationSettings& settings, const TokenHistory& history,
                   std::vector<float>* logits);

/// The next token: the first of the largest of the processed logits, or one drawn with `uniform`.
/// Throws Error(kInput) when none is left to draw.
int32_t ChooseToken(const GenerationSettings& settings, const TokenHistory& history, double uniform,
                    std::vector<float> logits);

}  // namespace evald::native

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "checkpoint/generation_config.h"
#include "evald/request.h"

namespace evald::native {

/// Philox 4x32-10, a counter-based generator: J. K. Salmon et al., "Parallel random numbers: as
/// easy as 1, 2, 3", SC 2011. The same counter and key always give the same four words.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A number in [0, 1) that depends only on the seed, the request and the index of the generated
/// token: not on batch, order or worker.
double UniformFor(uint64_t seed, const Request& request, int token_index);

/// The first of the largest logits. None may be NaN.
int32_t Greedy(const float* logits, int64_t vocab_size, float maximum);

/// torch.argmax: the first NaN if there is one, otherwise the first of the largest.
int32_t ArgMax(const float* logits, int64_t vocab_size);

/// Whether the logits have a softmax: no NaN, no plus infinity, and one above minus infinity.
bool HaveSoftmax(const float* logits, int64_t vocab_size);

/// The probabilities with which tokens are drawn, up to a common factor, after transformers'
/// warpers (generation/logits_process.py): temperature, top_h, top_k, top_p, min_p, typical_p,
/// epsilon_cutoff and eta_cutoff in this order, then softmax. Throws Error(kInput) if no logit is
/// above minus infinity, or if one is NaN or plus infinity (torch.multinomial raises there).
std::vector<double> Masses(const float* logits, int64_t vocab_size,
                           const GenerationSettings& settings);

/// Draws a token from Masses. `uniform` in [0, 1) picks from the kept tokens in order of id.
int32_t Sample(const float* logits, int64_t vocab_size, const GenerationSettings& settings,
               double uniform);

}  // namespace evald::native

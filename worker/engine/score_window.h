#pragma once

#include <cstdint>
#include <vector>

namespace evald {

/// A sequence of tokens. The tokens at its end are scored: the logits after tokens[score_from + i]
/// give the probability of targets[i].
struct ScoreWindow {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  int score_from = 0;
};

/// The window of a log-likelihood request, cut from the left to `max_length` tokens (at least 1):
/// (context + continuation)[-(max_length + 1):][:-1], as in lm_eval 0.4.13,
/// HFLM._loglikelihood_tokens. `continuation` has from 1 to `max_length` tokens. `*truncated`: how
/// many tokens were cut.
ScoreWindow WindowOf(const std::vector<int32_t>& context, const std::vector<int32_t>& continuation,
                     int max_length, int* truncated);

/// The windows of a rolling log-likelihood of `all`: lm_eval.utils.get_rolling_token_windows with
/// context_len 1, then make_disjoint_window. Each window but the first sees only as many tokens
/// before its own as fit. The first begins with `prefix_token`. No tokens give no windows.
std::vector<ScoreWindow> RollingWindows(const std::vector<int32_t>& all, int32_t prefix_token,
                                        int max_length);

}  // namespace evald

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace evald {

/// A token and the natural logarithm of its probability.
struct TokenLogProbability {
  int32_t token = 0;
  double log_probability = 0;
};

/// One token of an answer: a generated one, or one of a scored continuation. Log-probabilities are
/// those of the model's own logits, before generation settings (temperature, penalties, ...) change
/// them.
struct TokenReport {
  int32_t token = 0;
  double log_probability = 0;  ///< of `token`; NaN if the model gives no number
  /// The likeliest tokens at this place, likeliest first; among equal ones the lower id first.
  /// Tokens of probability 0 are left out, and all if the model gives no number.
  std::vector<TokenLogProbability> top;
};

/// A caller's wish to see the tokens of an answer.
struct TokenWatch {
  /// Number of likeliest tokens wanted at each place; kNoLogProbabilities: only the tokens
  int top = 0;
  /// Called during Step for each token, in the order of the answer. Must not throw, and not call
  /// the engine.
  std::function<void(TokenReport report)> on_token;

  static constexpr int kNoLogProbabilities = -1;
};

}  // namespace evald

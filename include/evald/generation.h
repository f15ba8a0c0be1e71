#pragma once

#include <cstdint>
#include <string>

#include "evald/json.h"
#include "evald/request.h"

namespace evald {

/// Why an engine stopped.
enum class FinishReason { kStop, kEos, kLength, kScored };

/// An engine's answer to one request. One line of a generations file (docs/formats.md). Holds
/// nothing that depends on time, load or batch, so that equal work gives equal bytes.
struct Generation {
  int64_t doc_id = 0;
  int idx = 0;
  int repeat = 0;
  RequestKind kind = RequestKind::kGenerateUntil;
  std::string text;          ///< kGenerateUntil: valid UTF-8, already cut before the stop string
  double loglikelihood = 0;  ///< the other kinds: natural logarithm; NaN where the model gives none
  bool is_greedy = false;    ///< kLoglikelihood
  FinishReason finish = FinishReason::kStop;
  int tokens_in = 0;   ///< prompt tokens, after truncation
  int tokens_out = 0;  ///< generated tokens; for log-likelihoods the scored ones
  int truncated = 0;   ///< tokens dropped from the left of the prompt
  /// kGenerateUntil: generated tokens that were chosen among logits without a softmax (NaN or
  /// infinite ones).
  int undefined = 0;
};

/// Whether the model gave no number: a log-likelihood that is NaN, or a text with tokens chosen
/// among NaN.
bool IsUndefined(const Generation& generation);

Json ToJson(const Generation& generation);
/// Throws Error(kInput) "<where>: ..." for an absent key or a wrong type.
Generation GenerationFromJson(const Json& json, const std::string& where);

}  // namespace evald

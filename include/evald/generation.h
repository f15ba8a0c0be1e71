#pragma once

#include <cstdint>
#include <string>

#include "evald/json.h"
#include "evald/request.h"

namespace evald {

/// The reason for which an engine stopped.
enum class FinishReason { kStop, kEos, kLength, kScored };

/// An engine's answer to one request. It is one line of a generations file (docs/formats.md). It
/// holds nothing that depends on time, load or batch, so equal work gives equal bytes.
struct Generation {
  int64_t doc_id = 0;
  int idx = 0;
  int repeat = 0;
  RequestKind kind = RequestKind::kGenerateUntil;
  /// kGenerateUntil: the answer, valid UTF-8, already without thinking and cut before the stop
  /// string
  std::string text;
  /// kGenerateUntil: the text before the answer, with the end of thinking and the white space
  /// behind it; "" if thinking has no end
  std::string thinking;
  /// the other kinds: natural logarithm; NaN if the model gives no number
  double loglikelihood = 0;
  bool is_greedy = false;  ///< kLoglikelihood
  FinishReason finish = FinishReason::kStop;
  int tokens_in = 0;   ///< prompt tokens, after truncation
  int tokens_out = 0;  ///< generated tokens; for log-likelihoods the scored ones
  int truncated = 0;   ///< tokens dropped from the left of the prompt
  /// kGenerateUntil: generated tokens that were chosen among logits without a softmax (NaN or
  /// infinite ones).
  int undefined = 0;
};

/// Whether the answer ran into the most tokens that it may have (max_gen_toks), before the model or
/// a stop string ended it. A truncated answer is another thing than a truncated prompt.
bool IsTruncatedAnswer(const Generation& generation);

/// Whether the model gave no number: the log-likelihood is NaN, or tokens of the text were chosen
/// among logits without a softmax.
bool IsUndefined(const Generation& generation);

Json ToJson(const Generation& generation);
/// Throws Error(kInput) "<where>: ..." for an absent key or a wrong type.
Generation GenerationFromJson(const Json& json, const std::string& where);

}  // namespace evald

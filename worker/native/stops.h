#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evald/generation.h"
#include "evald/request.h"
#include "tokenizer/tokenizer.h"
#include "worker/engine/thinking.h"

namespace evald::native {

/// The end of a generation, as in lm-evaluation-harness's `hf` backend (lm_eval 0.4.13). A stop
/// string is looked for in the text of the last tokens, two more than it encodes to
/// (MultiTokenEOSCriteria). Afterwards the text is cut at the first occurrence of each stop string
/// in turn (postprocess_generated_text). As there, the EOS token's text is a stop string, too, and
/// an empty stop string ends every generation after its first token. Immutable.
///
/// If the request says where thinking ends, only the EOS token's text ends the generation: a later
/// end would make thinking of everything before it, and stop strings do not count there. The answer
/// is split from the thinking and cut afterwards (worker/engine/thinking.h), as by the harness's
/// `vllm` backend.
class StopStrings {
 public:
  /// `tokenizer` must outlive this. Throws Error(kInput) for an end of thinking that it does not
  /// have.
  StopStrings(const Tokenizer& tokenizer, const SamplingParams& sampling);

  /// Whether generation ends after these tokens (the generated ones, without the prompt).
  bool Reached(const std::vector<int32_t>& generated) const;

  /// Sets text, thinking and `finish` of the generation: the text of the generated tokens without
  /// special ones, cut before the stop strings. `reason`: why the generation ended.
  void Answer(const std::vector<int32_t>& generated, FinishReason reason,
              Generation* generation) const;

 private:
  struct Stop {
    std::string text;
    size_t lookback = 0;  ///< tokens
  };
  void Add(const std::string& text);

  const Tokenizer& tokenizer_;
  std::vector<std::string> until_;  ///< the request's
  std::string eos_;                 ///< the EOS token's text; "" if there is none
  std::optional<ThinkingEnd> thinking_;
  std::vector<Stop> stops_;  ///< those that end a generation, by lookback
};

}  // namespace evald::native

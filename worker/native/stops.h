#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace evald::native {

/// The end of a generation, as in lm-evaluation-harness's `hf` backend (lm_eval 0.4.13). A stop
/// string is looked for in the text of the last tokens, two more than it encodes to
/// (MultiTokenEOSCriteria). Afterwards the text is cut at the first occurrence of each stop string
/// in turn (postprocess_generated_text). As there, the EOS token's text is a stop string, too, and
/// an empty stop string ends every generation after its first token. Immutable.
class StopStrings {
 public:
  /// `tokenizer` must outlive this.
  StopStrings(const Tokenizer& tokenizer, std::vector<std::string> until);

  /// Whether generation ends after these tokens (the generated ones, without the prompt).
  bool Reached(const std::vector<int32_t>& generated) const;

  /// Text of the generated tokens without special ones, cut before the stop strings.
  std::string Text(const std::vector<int32_t>& generated) const;

 private:
  struct Stop {
    std::string text;
    size_t lookback = 0;  ///< tokens
  };
  const Tokenizer& tokenizer_;
  std::vector<std::string> until_;
  std::vector<Stop> stops_;  ///< by lookback
};

}  // namespace evald::native

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evald/generation.h"
#include "evald/request.h"
#include "tokenizer/tokenizer.h"

namespace evald {

/// A generated text, split where the model's thinking ends.
struct SplitText {
  /// Up to the last end, with the end and the white space behind it; "" if there is no end
  std::string thinking;
  std::string answer;  ///< the rest, without white space in front
  bool ended = false;  ///< there is an end
};

/// The end of a model's thinking, as one tokenizer has it. Splits texts as lm-evaluation-harness
/// 0.4.13 does: a text by postprocess_generated_text (lm_eval/models/utils.py), tokens by their id
/// as HFLM.generate_until (lm_eval/models/huggingface.py). One thing differs: if the text is that
/// of a special token, which the decoded text of the `hf` backend never shows, the token's id
/// counts.
class ThinkingEnd {
 public:
  /// `tokenizer` may be null if `end` is a text; otherwise it must outlive this. Throws
  /// Error(kInput) for an id that the tokenizer does not have, or without a tokenizer.
  ThinkingEnd(const ThinkEnd& end, const Tokenizer* tokenizer);

  /// Whether texts that are decoded without special tokens do not show the end.
  bool special() const { return special_; }

  /// Splits the text of the generated tokens, decoded without special ones. Needs the tokenizer.
  SplitText OfTokens(const std::vector<int32_t>& generated) const;
  /// Splits a text. If the end is a special token, the text must show special tokens.
  SplitText OfText(const std::string& text) const;

 private:
  const Tokenizer* tokenizer_;
  int32_t token_ = -1;  ///< -1: the text counts
  std::string text_;
  bool special_ = false;
};

/// Cuts the answer at each stop string in turn, and then at the EOS token's text `eos` ("" for
/// none), and makes the parts the generation's thinking and text. `reason` is the engine's. A text
/// that ran into its most tokens is truncated if its thinking has not ended, whatever a stop string
/// cut from it; otherwise a stop string found in the answer has ended it.
void SetAnswer(SplitText split, const std::vector<std::string>& until, const std::string& eos,
               FinishReason reason, Generation* generation);

}  // namespace evald

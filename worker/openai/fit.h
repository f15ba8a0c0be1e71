#pragma once

#include "evald/request.h"
#include "tokenizer/tokenizer.h"

namespace evald::openai {

/// What fitting a prompt into the context took away.
struct PromptFit {
  int dropped = 0;  ///< tokens, from the left
};

/// Cuts the prompt of `request` from the left, so that it and what is to be generated (or scored)
/// fit into `max_length` tokens; 0 means that the length is not known, and nothing is cut. As
/// tokens, the tokens are cut; as text, the text becomes what the kept tokens decode to. Text that
/// cannot be measured (`tokenizer` null) is left to the server.
///
/// Throws Error(kInput) when nothing of the prompt (or not the continuation) would be left.
PromptFit FitPrompt(int max_length, bool tokens, const Tokenizer* tokenizer, Request* request);

}  // namespace evald::openai

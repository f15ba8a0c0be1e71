#pragma once

#include "evald/request.h"
#include "tokenizer/tokenizer.h"

namespace evald::server {

/// The tokens that were cut from a prompt to fit it into the context.
struct PromptFit {
  int dropped = 0;  ///< from the left
};

/// Cuts the prompt of `request` from the left until the prompt and the tokens to generate (or to
/// score) fit into `max_length` tokens. 0: the length is not known, nothing is cut. If `tokens`,
/// the token ids are cut; otherwise the text becomes what the kept tokens decode to. If `tokenizer`
/// is null, the text is left to the server.
///
/// Throws Error(kInput) if nothing of the prompt (or not the continuation) would be left.
PromptFit FitPrompt(int max_length, bool tokens, const Tokenizer* tokenizer, Request* request);

}  // namespace evald::server

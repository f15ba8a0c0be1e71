#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evald/json.h"

namespace evald {

/// A whole answer of a judge.
struct Completion {
  std::string text;
  bool cut = false;  ///< it ran into max_tokens
  // As the server counts them; 0 if it does not say.
  int64_t tokens_in = 0, tokens_out = 0;
};

/// Reads the body of an answer of chat/completions (OpenAI's API, "The chat completion object").
/// Throws Error(kInfrastructure) for a body that is none: a page of a proxy, or nothing.
Completion ReadCompletion(std::string_view body);

/// What a server says of a call that it refused: {"error": {"message": ...}}, or the beginning of
/// the body.
std::string RefusalIn(std::string_view body);

}  // namespace evald

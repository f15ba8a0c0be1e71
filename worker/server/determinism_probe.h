#pragma once

#include <string>

#include "worker/server/completions.h"
#include "worker/server/server.h"

namespace evald::server {

/// Whether a server gives the same bits, whatever else it computes at the same time.
struct Determinism {
  bool shown = false;  ///< all answers were equal
  std::string reason;  ///< the first difference, or how many answers were compared
};

/// Asks for the greedy continuations of some texts with their log-probabilities: one after another,
/// all together, together in reverse, and one after another behind an emptied prefix cache. All
/// must be equal to the bit. `style`: model and form of prompts. A failure of the server is a
/// reason, and nothing is shown.
Determinism ProbeDeterminism(Server* server, const CompletionsStyle& style,
                             const Tokenizer* tokenizer);

}  // namespace evald::server

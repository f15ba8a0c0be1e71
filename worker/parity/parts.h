#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "worker/engine/score_window.h"

namespace evald::parity {

/// A sequence of tokens, and the windows at its end that two engines score.
struct Part {
  std::string name;  ///< for messages: "a text of 12 tokens", "4,120 tokens, beyond the window"
  bool is_long = false;
  std::vector<ScoreWindow> windows;
  int64_t rows = 0;  ///< tokens that an engine computes for it, about
};

/// What a model does differently for long texts.
struct Edge {
  int64_t tokens = 0;  ///< texts of more tokens are different
  std::string name;    ///< "the sliding window", "the context before its scaling"
};

/// The parts for a model, the shortest first: each of Texts(), one of a few hundred tokens, and one
/// beyond each edge, as far as they fit into `max_length` tokens. At the end of each part several
/// tokens are scored as the next one, and the text's own last tokens together.
std::vector<Part> MakeParts(const Tokenizer& tokenizer, int max_length,
                            const std::vector<Edge>& edges);

}  // namespace evald::parity

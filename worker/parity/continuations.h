#pragma once

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "worker/engine/engine.h"

namespace evald::parity {

/// A text, and how evald's own engine goes on with it.
struct Continuation {
  std::string prompt;
  std::string text;  ///< greedy, kContinuationTokens tokens at most
};
inline constexpr int kContinuationTokens = 12;

/// The continuations of Texts() by an engine that has loaded a checkpoint and holds no requests.
/// Texts that end within a character are left out. Throws what the engine throws.
std::vector<Continuation> ContinuationsOf(Engine* engine, const Tokenizer& tokenizer);

/// The first text that another engine continues otherwise, for a message; "" if at least half of
/// the texts are equal. Rounding may decide between two tokens that are about as likely, after
/// which a text goes on otherwise; hardly ever in half of the texts.
std::string Different(const std::vector<Continuation>& expected,
                      const std::vector<std::string>& found);

}  // namespace evald::parity

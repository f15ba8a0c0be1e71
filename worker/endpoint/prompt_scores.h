#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "worker/endpoint/engine_queue.h"
#include "worker/engine/token_watch.h"

namespace evald::endpoint {

/// The log-probabilities of a prompt's tokens: entry i is that of token i + 1, given those before.
struct PromptScore {
  std::vector<TokenReport> reports;
  std::optional<Error> refused;  ///< why there are none
};

/// A wish for the log-probabilities of a prompt's tokens.
struct ScoreWish {
  std::vector<int32_t> tokens;  ///< at least one
  int top = 0;                  ///< likeliest tokens at each place
  std::function<bool()> wanted;
  std::function<void(PromptScore score)> done;  ///< called once, from any thread; must not throw
};

/// Asks an engine for the log-probabilities of prompts, and does not ask twice: those of a prefix
/// that an earlier prompt had are remembered, and prompts that share a long prefix with one under
/// way wait for it. So the choices of a question cost one prompt and their own tokens. Only for a
/// deterministic engine, whose numbers depend on the tokens alone; else every prompt is computed.
/// Any thread.
class PromptScores {
 public:
  static constexpr size_t kRememberedMax = size_t{1} << 18;  ///< tokens

  PromptScores(EngineQueue* queue, bool deterministic, size_t remembered_max = kRememberedMax);
  ~PromptScores();

  /// Takes all wishes, or none: the engine has too much to do.
  bool Ask(std::vector<ScoreWish> wishes);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace evald::endpoint

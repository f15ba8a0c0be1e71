#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evald/request.h"
#include "tokenizer/tokenizer.h"
#include "worker/engine/score_window.h"
#include "worker/engine/thinking.h"
#include "worker/server/completions.h"

namespace evald::server {

/// A request as calls of a server.
struct Plan {
  Request request;                  ///< with its prompt cut to the server's context
  int truncated = 0;                ///< tokens dropped from the left
  std::string body;                 ///< kGenerateUntil: of the one call
  std::vector<int32_t> end_tokens;  ///< kGenerateUntil: any of them ends the text
  /// kGenerateUntil: where thinking ends, if the request says so
  std::optional<ThinkingEnd> thinking;
  std::vector<ScoreWindow> windows;  ///< the other kinds: what is to be scored
  int tokens_in = 0;                 ///< with windows: tokens that are not scored
  int tokens_out = 0;                ///< with windows: tokens that are scored
  /// The most bytes that the answer to the call for a text may have.
  size_t answer_bytes_max = 0;
};

/// What plans go by.
struct PlanSetup {
  CompletionsStyle style;
  Json extra = Json::object();           ///< members of every body for a text, unless it has them
  const Tokenizer* tokenizer = nullptr;  ///< null if evald does not understand the checkpoint's
  /// The server shows special tokens in texts if it is told `skip_special_tokens: false`
  bool shows_special = false;
};

/// The most bytes of an answer that evald takes, whatever was asked.
inline constexpr size_t kAnswerBytesMax = 64u << 20;
/// The most bytes that the answer to a call for the scores of `window` may have.
size_t AnswerBytesMax(const ScoreWindow& window);

/// Throws Error(kInput) that names the task and the document for a request that can never be
/// answered: nothing of the prompt would be left, a setting that the server has no name for, a
/// rolling log-likelihood without a token to begin with, an end of thinking that the server's
/// answers do not show.
///
/// A server computes the last scored token too, and generates one more. So it scores windows of two
/// tokens less than its context; the native engine's have the context's length.
Plan PlanFor(const PlanSetup& setup, Request request);

}  // namespace evald::server

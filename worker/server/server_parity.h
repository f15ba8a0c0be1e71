#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "worker/parity/parity_check.h"
#include "worker/server/scorer.h"
#include "worker/server/server.h"

namespace evald::server {

/// The scores of windows of tokens, asked one call after another, each in the first way that has
/// one. No value if no way has. Throws Error(kInfrastructure) if a call fails.
std::vector<std::optional<double>> ScoresNow(const Scorer& scorer,
                                             const std::vector<ScoreWindow>& windows,
                                             const PostJson& post);

/// The first text (worker/parity/texts.h) for which the server's own tokenizer has other tokens
/// than `tokenizer`, with both, for a message; "" if there is none, or if the server does not tell.
std::string OtherTokens(const Dialect& dialect, const std::string& model,
                        const Tokenizer& tokenizer, const PostJson& post);

}  // namespace evald::server

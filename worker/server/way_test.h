#pragma once

#include <functional>
#include <string>
#include <vector>

#include "http_client/request.h"
#include "tokenizer/tokenizer.h"
#include "worker/server/next_tokens.h"
#include "worker/server/scoring_way.h"

namespace evald::server {

/// Whether a server scores prompts correctly in one way.
struct ScoringVerdict {
  bool right = false;
  std::string reason;  ///< if not right, the fault; else the checks made
};

/// A window whose score is known from the server's own next-token log-probabilities.
struct ScoringCase {
  ScoreWindow window;
  Score expected;
  bool clear = false;  ///< whether rounding cannot change `expected.is_greedy`
};

/// Cases with one target and with several, short ones and one of a few hundred tokens, which comes
/// twice: the second time a server may know its begin. Cases of equal tokens follow each other.
/// `max_length` is the server's context in tokens; 0: not known. Throws Error.
std::vector<ScoringCase> MakeScoringCases(const CompletionsStyle& style, const Tokenizer& tokenizer,
                                          int max_length, const Ask& ask);

/// A call of `path` with a body of JSON.
using PostJson = std::function<http_client::Response(const std::string& path, const Json& body)>;

/// Tries a way before it is trusted. It must answer at least three cases, one of them with the
/// likeliest token. Its log-probabilities must be within 0.1 nats per token on average, none
/// further off than 0.5, and `is_greedy` right wherever rounding cannot change it. Never throws
/// because of the server: its errors become `reason`.
ScoringVerdict TestWay(const ScoringWay& way, const std::vector<ScoringCase>& cases,
                       const PostJson& post);

}  // namespace evald::server

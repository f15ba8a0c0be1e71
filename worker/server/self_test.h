#pragma once

#include "tokenizer/tokenizer.h"
#include "worker/server/completions.h"
#include "worker/server/next_tokens.h"
#include "worker/server/way_test.h"

namespace evald::server {

/// Tries a server's prompt log-probabilities (echo) before they are trusted. Some servers return
/// numbers at chance level, or shifted by a token (llama.cpp issue 27174). Several prompts are
/// tried, to check that
///  - there is one value per prompt token, none positive, not all alike;
///  - the server names likely next tokens. If one of them is appended to the prompt, its score is
///    the named log-probability (within 0.1 nats), with or without more text behind it;
///  - the server reports the likeliest of these tokens as the greedy one, and no other;
///  - the same token behind another context has another probability.
/// Never throws because of the server: its errors become `reason`.
ScoringVerdict TestScoring(const CompletionsStyle& style, const Tokenizer& tokenizer,
                           const Ask& ask);

/// Sum of the log-probabilities of tokens [begin, end) of an echoed prompt, and whether each was
/// the likeliest. Throws Error(kInfrastructure) if the reply has no usable value for one of them.
double SumLogprobs(const Completion& completion, size_t begin, size_t end, bool* is_greedy);

}  // namespace evald::server

#include "worker/server/next_tokens.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "evald/error.h"

namespace evald::server {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int kLikeliest = 5;
constexpr double kClearNats = 0.2;  // of half-precision logits

// The id of `text` behind the prompt; none unless it is exactly one token there.
std::optional<int32_t> IdAfter(const Tokenizer& tokenizer, const std::string& prompt,
                               const Tokens& tokens, const std::string& text) {
  const Tokens whole = tokenizer.Encode(prompt + text, true);
  if (whole.size() != tokens.size() + 1) return std::nullopt;
  if (!std::equal(tokens.begin(), tokens.end(), whole.begin())) return std::nullopt;
  return whole.back();
}

// The highest log-probability among the others than `text`.
double BestOther(const ScoredToken& token, const std::string& text) {
  double best = -INFINITY;
  for (const auto& [other, logprob] : token.top) {
    if (other != text && logprob > best) best = logprob;
  }
  return best;
}

}  // namespace

std::vector<NextToken> LikeliestAfter(const CompletionsStyle& style, const Tokenizer& tokenizer,
                                      const std::string& prompt, const Tokens& tokens,
                                      const Ask& ask) {
  Json body = ScoreBody(style, tokens);
  body.erase("echo");
  body["logprobs"] = kLikeliest;
  const Completion reply = ask(body);
  if (reply.tokens.empty()) {
    throw Error(ErrorKind::kInfrastructure, "the server returns no log-probabilities");
  }
  std::vector<NextToken> next;
  for (const auto& [text, logprob] : reply.tokens[0].top) {
    const auto id = IdAfter(tokenizer, prompt, tokens, text);
    if (!id || !std::isfinite(logprob)) continue;
    const bool clear = std::fabs(logprob - BestOther(reply.tokens[0], text)) > kClearNats;
    next.push_back({*id, text, logprob, logprob >= reply.tokens[0].best, clear});
  }
  std::sort(next.begin(), next.end(),
            [](const NextToken& a, const NextToken& b) { return a.logprob > b.logprob; });
  return next;
}

const std::vector<std::string>& TestPrompts() {
  static const std::vector<std::string> kPrompts = {
      "The capital of France is the city of", "def add(a, b):\n    return a",
      "Question: What is 2 + 3?\nAnswer:",    "one, two, three, four, five, six,",
      "Once upon a time there was a small",
  };
  return kPrompts;
}

}  // namespace evald::server

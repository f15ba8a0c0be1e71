#include "worker/server/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evald/error.h"

namespace evald::server {
namespace {

constexpr double kToleranceNats =
    0.1;  // half-precision weights and another kernel for long prompts
constexpr int kChecksMin = 3;

constexpr const char* kOtherContext = "0 0 0 0 ? ? ? !";
constexpr const char* kSuffix = " and so on";

// The reason to refuse the server; thrown within this file to end the checks.
struct Refusal {
  std::string reason;
};

using Tokens = std::vector<int32_t>;

class Tester {
 public:
  Tester(const CompletionsStyle& style, const Tokenizer& tokenizer, const Ask& ask)
      : style_(style), tokenizer_(tokenizer), ask_(ask) {}

  void Check(const std::string& prompt);
  int checks() const { return checks_; }
  int greedy_checks() const { return greedy_checks_; }

 private:
  Completion Score(const Tokens& tokens);
  void CheckCandidate(const Tokens& prompt, const NextToken& candidate);

  const CompletionsStyle& style_;
  const Tokenizer& tokenizer_;
  const Ask& ask_;
  int checks_ = 0;
  int greedy_checks_ = 0;
};

Completion Tester::Score(const Tokens& tokens) {
  Completion reply = ask_(ScoreBody(style_, tokens));
  if (reply.tokens.empty()) throw Refusal{"the server returns no log-probabilities of the prompt"};
  if (reply.tokens.size() < tokens.size() || reply.tokens.size() > tokens.size() + 1) {
    throw Refusal{fmt::format("a prompt of {} tokens came back with {} log-probabilities",
                              tokens.size(), reply.tokens.size())};
  }
  bool alike = tokens.size() > 2;
  for (size_t i = 1; i < tokens.size(); ++i) {
    const double value = reply.tokens[i].logprob;
    if (!std::isfinite(value) || value > 1e-3) {
      throw Refusal{fmt::format("token {} of a prompt has the log-probability {}", i, value)};
    }
    alike = alike && std::fabs(value - reply.tokens[1].logprob) < 1e-6;
  }
  if (alike) throw Refusal{"all tokens of a prompt have the same log-probability"};
  return reply;
}

void Tester::CheckCandidate(const Tokens& prompt, const NextToken& candidate) {
  const size_t at = prompt.size();
  Tokens whole = prompt;
  whole.push_back(candidate.id);
  const Completion last = Score(whole);
  for (const int32_t token : tokenizer_.Encode(kSuffix, false)) whole.push_back(token);
  const Completion middle = Score(whole);
  for (const Completion* reply : {&last, &middle}) {
    const double found = reply->tokens[at].logprob;
    if (std::fabs(found - candidate.logprob) > kToleranceNats) {
      throw Refusal{
          fmt::format("a next token that the server gives the log-probability {:.3f} has "
                      "{:.3f} as part of the prompt",
                      candidate.logprob, found)};
    }
  }
  bool greedy = false;
  SumLogprobs(last, at, at + 1, &greedy);
  if (candidate.clear && greedy != candidate.likeliest) {
    throw Refusal{"the server does not say rightly whether a prompt's token is the likeliest"};
  }
  ++checks_;
  greedy_checks_ += greedy ? 1 : 0;
}

void Tester::Check(const std::string& prompt) {
  const Tokens tokens = tokenizer_.Encode(prompt, true);
  if (tokens.size() < 3) return;
  std::vector<NextToken> candidates = LikeliestAfter(style_, tokenizer_, prompt, tokens, ask_);
  if (candidates.size() > 2) candidates.resize(2);
  for (const NextToken& candidate : candidates) CheckCandidate(tokens, candidate);
  if (candidates.empty()) return;
  Tokens elsewhere = tokenizer_.Encode(kOtherContext, true);
  elsewhere.push_back(candidates[0].id);
  const double there = Score(elsewhere).tokens[elsewhere.size() - 1].logprob;
  if (std::fabs(there - candidates[0].logprob) < 1e-6) {
    throw Refusal{"a token has the same log-probability behind different contexts"};
  }
}

}  // namespace

ScoringVerdict TestScoring(const CompletionsStyle& style, const Tokenizer& tokenizer,
                           const Ask& ask) {
  Tester tester(style, tokenizer, ask);
  try {
    for (const std::string& prompt : TestPrompts()) tester.Check(prompt);
  } catch (const Refusal& refusal) {
    return {false, refusal.reason};
  } catch (const Error& e) {
    return {false, fmt::format("the server refused a scoring request: {}", e.what())};
  }
  if (tester.checks() < kChecksMin || tester.greedy_checks() == 0) {
    return {false,
            fmt::format("only {} of its log-probabilities could be checked, expected at least "
                        "{}, the likeliest token among them",
                        tester.checks(), kChecksMin)};
  }
  return {true, fmt::format("{} log-probabilities agree with the server's own generation",
                            tester.checks())};
}

double SumLogprobs(const Completion& completion, size_t begin, size_t end, bool* is_greedy) {
  if (completion.tokens.size() < end) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("the server returned {} log-probabilities, expected at least {}",
                            completion.tokens.size(), end));
  }
  double sum = 0;
  *is_greedy = true;
  for (size_t i = begin; i < end; ++i) {
    const ScoredToken& token = completion.tokens[i];
    if (std::isnan(token.logprob) || std::isnan(token.best)) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("the server's reply has no log-probability for token {}", i));
    }
    if (!std::isfinite(token.logprob) || token.logprob > 1e-3) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("the server's reply has the log-probability {} for token {}",
                              token.logprob, i));
    }
    sum += token.logprob;
    *is_greedy = *is_greedy && token.logprob >= token.best;
  }
  return sum;
}

}  // namespace evald::server

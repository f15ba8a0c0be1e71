#include "worker/server/way_test.h"

#include <fmt/format.h>

#include <cmath>

#include "evald/error.h"
#include "worker/server/server.h"

namespace evald::server {
namespace {

using Tokens = std::vector<int32_t>;

// Half-precision logits differ by a step of their type between one batch and another: by 0.125 if
// they lie between 16 and 32 (bf16).
constexpr double kMeanNats = 0.1, kMostNats = 0.5;
constexpr size_t kCasesMin = 3;
constexpr size_t kLongTokens = 300;
constexpr size_t kSpareTokens = 8;  // of the context, behind a long prompt

ScoringCase CaseOf(const Tokens& tokens, const std::vector<NextToken>& targets) {
  ScoringCase one{{tokens, {}, static_cast<int>(tokens.size()) - 1}, {}, true};
  bool surely_not = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    const NextToken& target = targets[i];
    if (i > 0) one.window.tokens.push_back(targets[i - 1].id);
    one.window.targets.push_back(target.id);
    one.expected.logprob += target.logprob;
    one.expected.is_greedy = one.expected.is_greedy && target.likeliest;
    one.clear = one.clear && target.clear;
    surely_not = surely_not || (!target.likeliest && target.clear);
  }
  one.clear = one.clear || surely_not;
  return one;
}

// Two next tokens, and one of two tokens.
void AddCases(const CompletionsStyle& style, const Tokenizer& tokenizer, const std::string& prompt,
              const Tokens& tokens, const Ask& ask, std::vector<ScoringCase>* cases) {
  std::vector<NextToken> first = LikeliestAfter(style, tokenizer, prompt, tokens, ask);
  if (first.empty()) return;
  if (first.size() > 2) first.resize(2);
  for (const NextToken& next : first) cases->push_back(CaseOf(tokens, {next}));
  Tokens longer = tokens;
  longer.push_back(first[0].id);
  const std::vector<NextToken> second =
      LikeliestAfter(style, tokenizer, prompt + first[0].text, longer, ask);
  for (size_t i = 0; i < second.size() && i < 2; ++i)
    cases->push_back(CaseOf(tokens, {first[0], second[i]}));
}

std::string LongPrompt(const Tokenizer& tokenizer, Tokens* tokens) {
  std::string text;
  while (tokens->size() < kLongTokens) {
    for (const std::string& prompt : TestPrompts()) text += prompt + "\n";
    const Tokens encoded = tokenizer.Encode(text, true);
    if (encoded.size() <= tokens->size()) break;
    *tokens = encoded;
  }
  return text;
}

// The cases from `begin` on that have the tokens of the first, as many as go into one call.
size_t Together(const ScoringWay& way, const std::vector<ScoringCase>& cases, size_t begin) {
  size_t end = begin + 1;
  while (end < cases.size() && end - begin < way.together() && way.Takes(cases[end].window) &&
         cases[end].window.tokens == cases[begin].window.tokens)
    ++end;
  return end;
}

class Comparison {
 public:
  // The fault, or "".
  std::string Add(const ScoringCase& one, const Score& found) {
    const auto tokens = static_cast<double>(one.window.targets.size());
    const double off = std::fabs(found.logprob - one.expected.logprob) / tokens;
    if (!(off <= kMostNats)) {
      return fmt::format(
          "tokens to which the server gives the log-probability {:.3f} as next ones have {:.3f} as "
          "part of the prompt",
          one.expected.logprob, found.logprob);
    }
    if (one.clear && found.is_greedy != one.expected.is_greedy)
      return "the server does not say rightly whether a prompt's token is the likeliest";
    sum_ += off;
    ++count_;
    greedy_ += one.expected.is_greedy ? 1 : 0;
    return "";
  }

  ScoringVerdict Verdict() const {
    if (count_ < kCasesMin || greedy_ == 0) {
      return {false, fmt::format("only {} of its log-probabilities could be checked, expected at "
                                 "least {}, the likeliest token among them",
                                 count_, kCasesMin)};
    }
    const double mean = sum_ / static_cast<double>(count_);
    if (mean > kMeanNats)
      return {false, fmt::format("its log-probabilities are {:.3f} off on average", mean)};
    return {true,
            fmt::format("{} log-probabilities agree with the server's own generation", count_)};
  }

 private:
  double sum_ = 0;
  size_t count_ = 0, greedy_ = 0;
};

}  // namespace

std::vector<ScoringCase> MakeScoringCases(const CompletionsStyle& style, const Tokenizer& tokenizer,
                                          int max_length, const Ask& ask) {
  std::vector<ScoringCase> cases;
  for (const std::string& prompt : TestPrompts()) {
    const Tokens tokens = tokenizer.Encode(prompt, true);
    if (tokens.size() >= 3) AddCases(style, tokenizer, prompt, tokens, ask, &cases);
  }
  Tokens tokens;
  const std::string prompt = LongPrompt(tokenizer, &tokens);
  if (max_length > 0 && tokens.size() + kSpareTokens > static_cast<size_t>(max_length))
    return cases;
  std::vector<ScoringCase> twice;
  AddCases(style, tokenizer, prompt, tokens, ask, &twice);
  for (int times = 0; times < 2; ++times) cases.insert(cases.end(), twice.begin(), twice.end());
  return cases;
}

ScoringVerdict TestWay(const ScoringWay& way, const std::vector<ScoringCase>& cases,
                       const PostJson& post) {
  Comparison comparison;
  try {
    for (size_t begin = 0, end = 0; begin < cases.size(); begin = end) {
      end = Together(way, cases, begin);
      if (!way.Takes(cases[begin].window)) continue;
      std::vector<const ScoreWindow*> windows;
      for (size_t i = begin; i < end; ++i) windows.push_back(&cases[i].window);
      const http_client::Response reply = post(way.path(), way.Body(windows));
      if (reply.answered() && !reply.ok() && way.LeavesToNext(reply.status, WhyNot(reply)))
        continue;
      if (!reply.ok()) return {false, "the server refused a scoring request: " + WhyNot(reply)};
      const auto scores = way.Read(windows, reply.body);
      for (size_t i = begin; i < end; ++i) {
        if (!scores[i - begin]) continue;
        const std::string fault = comparison.Add(cases[i], *scores[i - begin]);
        if (!fault.empty()) return {false, fault};
      }
    }
  } catch (const Error& e) {
    return {false, fmt::format("the server's answer to a scoring request: {}", e.what())};
  }
  return comparison.Verdict();
}

}  // namespace evald::server

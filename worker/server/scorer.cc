#include "worker/server/scorer.h"

#include <algorithm>

#include "evald/error.h"
#include "worker/server/self_test.h"

namespace evald::server {

Scorer::Scorer(std::vector<std::unique_ptr<ScoringWay>> ways, const CompletionsStyle& style,
               const Tokenizer& tokenizer, int max_length, const Ask& ask, const PostJson& post) {
  std::optional<std::vector<ScoringCase>> cases;
  for (auto& way : ways) {
    ScoringVerdict verdict;
    try {
      if (!way->echoes() && !cases) {
        cases = MakeScoringCases(style, tokenizer, max_length, ask);
        for (const ScoringCase& one : *cases) values_.push_back(one.expected.logprob);
      }
      verdict = way->echoes() ? TestScoring(style, tokenizer, ask) : TestWay(*way, *cases, post);
    } catch (const Error& e) {
      verdict = {false, e.message()};
    }
    tried_.push_back({{"name", way->name()}, {"right", verdict.right}, {"reason", verdict.reason}});
    reason_ = verdict.reason;
    const bool complete = way->complete();
    if (verdict.right) ways_.push_back(std::move(way));
    offered_ = verdict.right && complete;
    if (offered_) break;
  }
  if (!offered_) ways_.clear();
}

std::optional<size_t> Scorer::WayFor(const ScoreWindow& window, size_t from) const {
  for (size_t i = from; i < ways_.size(); ++i) {
    if (ways_[i]->Takes(window)) return i;
  }
  return std::nullopt;
}

size_t Scorer::together() const {
  size_t most = 1;
  for (const auto& way : ways_) most = std::max(most, way->together());
  return most;
}

Json Scorer::Report() const {
  Json report = {{"offered", offered_}, {"reason", reason_}};
  if (tried_.size() > 1) report["ways"] = tried_;
  return report;
}

}  // namespace evald::server

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "worker/server/way_test.h"

namespace evald::server {

/// The ways in which a server has shown that it scores rightly.
class Scorer {
 public:
  /// Nothing is scored, for `reason`.
  explicit Scorer(std::string reason = "nothing is loaded") : reason_(std::move(reason)) {}
  /// Tries the ways one after another, up to the first complete one that is right. `ask` and `post`
  /// call the server. `max_length` is its context in tokens; 0: not known.
  Scorer(std::vector<std::unique_ptr<ScoringWay>> ways, const CompletionsStyle& style,
         const Tokenizer& tokenizer, int max_length, const Ask& ask, const PostJson& post);

  bool offered() const { return offered_; }
  /// What the test found; why not, if nothing is offered.
  const std::string& reason() const { return reason_; }
  /// The first way from number `from` on that takes the window; none if none does.
  std::optional<size_t> WayFor(const ScoreWindow& window, size_t from = 0) const;
  const ScoringWay& way(size_t number) const { return *ways_[number]; }
  /// The most windows that one call may answer.
  size_t together() const;
  /// Log-probabilities that the server gave to tokens of the test. Other weights give others.
  const std::vector<double>& values() const { return values_; }
  /// {"offered", "reason", "ways": [{"name", "right", "reason"}, ...]}: those that were tried.
  Json Report() const;

 private:
  std::vector<std::unique_ptr<ScoringWay>> ways_;  ///< those that are right
  bool offered_ = false;
  std::string reason_;
  std::vector<double> values_;
  Json tried_ = Json::array();
};

}  // namespace evald::server

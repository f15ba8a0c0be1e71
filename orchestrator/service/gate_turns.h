#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace evald {

/// Runs whose gates wait to be judged. Users take turns: next comes a run of the user who has the
/// fewest at work, of those the user who began one longest ago, of that user's runs the one that
/// was added first. A plain value.
template <typename Outcome>
class GateTurns {
 public:
  struct Waiting {
    int64_t run = 0;
    std::string user;
    Outcome outcome;
  };

  void Add(int64_t run, std::string user, Outcome outcome) {
    waiting_.push_back({run, std::move(user), std::move(outcome)});
  }

  /// The next one, which its user has at work until Done.
  std::optional<Waiting> Next() {
    if (waiting_.empty()) return std::nullopt;
    const auto next = std::min_element(
        waiting_.begin(), waiting_.end(),
        [this](const Waiting& a, const Waiting& b) { return TurnOf(a.user) < TurnOf(b.user); });
    Waiting taken = std::move(*next);
    waiting_.erase(next);
    Turn& turn = turns_[taken.user];
    ++turn.at_work;
    turn.last = ++begun_;
    return taken;
  }

  /// A run of this user has been judged.
  void Done(const std::string& user) {
    --turns_[user].at_work;
    const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                   [&](const Waiting& one) { return one.user == user; });
    if (turns_[user].at_work == 0 && !waits) turns_.erase(user);
  }

  /// Takes out a run that waits; nothing where it does not.
  std::optional<Waiting> Take(int64_t run) {
    const auto found = Find(run);
    if (found == waiting_.end()) return std::nullopt;
    Waiting taken = std::move(*found);
    waiting_.erase(found);
    return taken;
  }

  bool Has(int64_t run) const {
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [&](const Waiting& one) { return one.run == run; });
  }

 private:
  struct Turn {
    int at_work = 0;
    int64_t last = 0;  ///< which of all that were begun its last one was
  };

  auto Find(int64_t run) {
    return std::find_if(waiting_.begin(), waiting_.end(),
                        [&](const Waiting& one) { return one.run == run; });
  }
  std::pair<int, int64_t> TurnOf(const std::string& user) const {
    const auto found = turns_.find(user);
    return found == turns_.end() ? std::pair(0, int64_t{0})
                                 : std::pair(found->second.at_work, found->second.last);
  }

  std::deque<Waiting> waiting_;
  std::map<std::string, Turn> turns_;  // of users with a run at work, or who wait after one
  int64_t begun_ = 0;
};

}  // namespace evald

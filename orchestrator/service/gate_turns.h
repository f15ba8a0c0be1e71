#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace evald {

/// Runs whose gates wait to be judged. Users take turns: each has one run judged at a time, and
/// next is the user whose last judgement began longest ago. A user's runs go in the order in which
/// they were added. The user "" stands for everybody in a service without tokens, and may have
/// several judged at once. A plain value.
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

  /// The next run to judge. It counts as being judged until Done. Nothing if all that wait are of
  /// users with a run being judged.
  std::optional<Waiting> Next() {
    if (waiting_.empty()) return std::nullopt;
    const auto next = std::min_element(
        waiting_.begin(), waiting_.end(),
        [this](const Waiting& a, const Waiting& b) { return TurnOf(a.user) < TurnOf(b.user); });
    if (!next->user.empty() && TurnOf(next->user).first > 0) return std::nullopt;
    Waiting taken = std::move(*next);
    waiting_.erase(next);
    Turn& turn = turns_[taken.user];
    ++turn.at_work;
    turn.last = ++begun_;
    return taken;
  }

  /// One of the user's runs has been judged.
  void Done(const std::string& user) {
    --turns_[user].at_work;
    const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                   [&](const Waiting& one) { return one.user == user; });
    if (turns_[user].at_work == 0 && !waits) turns_.erase(user);
  }

  /// Takes out a run that waits. Nothing if it does not wait.
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
    int64_t last = 0;  ///< number of the user's last run among all that were begun
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
  // Users with a run being judged, or with runs that wait after one
  std::map<std::string, Turn> turns_;
  int64_t begun_ = 0;
};

}  // namespace evald

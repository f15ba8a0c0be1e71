#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "worker/engine/score_window.h"

namespace evald::server {

/// One thing to ask of a server: a text, or the score of one window.
struct Item {
  using TimePoint = std::chrono::steady_clock::time_point;
  uint64_t tag = 0;                     ///< of the request
  size_t index = 0;                     ///< of the window among the request's
  const ScoreWindow* window = nullptr;  ///< null: a text. Must outlive the item
  size_t way = 0;                       ///< in which the window is to be scored
  int attempts = 0;
  int timeouts = 0;
  TimePoint not_before{};
};

/// The items that are not under way. Texts come first, in the order in which they were added.
/// Windows come in the order of their tokens, so that those with a common begin are asked one after
/// another while the server remembers it; behind the last window the first follows.
class Waiting {
 public:
  void Add(const Item& item);
  /// What is to be asked next in one call: a text, or windows with equal tokens that are scored in
  /// one way, at most `together(item)` of them. Empty: nothing is due.
  std::vector<Item> Take(Item::TimePoint now,
                         const std::function<size_t(const Item& item)>& together);
  /// When the first of those is due that have to wait.
  std::optional<Item::TimePoint> NextDue() const;
  std::vector<Item> TakeAll();

 private:
  struct ByTokens {
    bool operator()(const ScoreWindow* a, const ScoreWindow* b) const {
      return a->tokens < b->tokens;
    }
  };
  void Put(const Item& item);

  std::deque<Item> texts_;
  std::multimap<const ScoreWindow*, Item, ByTokens> windows_;
  std::multimap<Item::TimePoint, Item> later_;
  ScoreWindow last_;  ///< the one that was taken last
};

}  // namespace evald::server

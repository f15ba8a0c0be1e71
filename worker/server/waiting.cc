#include "worker/server/waiting.h"

#include <utility>

namespace evald::server {

void Waiting::Put(const Item& item) {
  if (item.window == nullptr) {
    texts_.push_back(item);
  } else {
    windows_.emplace(item.window, item);
  }
}

void Waiting::Add(const Item& item) {
  if (item.not_before == Item::TimePoint{}) {
    Put(item);
  } else {
    later_.emplace(item.not_before, item);
  }
}

std::vector<Item> Waiting::Take(Item::TimePoint now,
                                const std::function<size_t(const Item& item)>& together) {
  while (!later_.empty() && later_.begin()->first <= now) {
    Put(later_.begin()->second);
    later_.erase(later_.begin());
  }
  std::vector<Item> taken;
  if (!texts_.empty()) {
    taken.push_back(texts_.front());
    texts_.pop_front();
    return taken;
  }
  if (windows_.empty()) return taken;
  auto next = windows_.lower_bound(&last_);
  if (next == windows_.end()) next = windows_.begin();
  const Item first = next->second;
  const size_t most = together(first);
  last_.tokens = first.window->tokens;
  while (next != windows_.end() && taken.size() < most && next->first->tokens == last_.tokens) {
    if (next->second.way != first.way) {
      ++next;
      continue;
    }
    taken.push_back(next->second);
    next = windows_.erase(next);
  }
  return taken;
}

std::optional<Item::TimePoint> Waiting::NextDue() const {
  if (later_.empty()) return std::nullopt;
  return later_.begin()->first;
}

std::vector<Item> Waiting::TakeAll() {
  std::vector<Item> all(texts_.begin(), texts_.end());
  for (const auto& [window, item] : windows_) all.push_back(item);
  for (const auto& [due, item] : later_) all.push_back(item);
  texts_.clear();
  windows_.clear();
  later_.clear();
  return all;
}

}  // namespace evald::server

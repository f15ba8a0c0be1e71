#include "orchestrator/schedule/lease_table.h"

#include <algorithm>
#include <cassert>

namespace evald {

void LeaseTable::Add(int64_t item, int64_t rank) {
  const bool added = items_.emplace(item, Item{rank}).second;
  assert(added && "an item is added once");
  (void)added;
  queue_[rank].push_back(item);
}

std::optional<Grant> LeaseTable::Lease(const std::string& holder, int64_t now,
                                       const std::function<bool(int64_t item)>& fits) {
  heard_[holder] = now;
  for (auto rank = queue_.begin(); rank != queue_.end(); ++rank) {
    std::deque<int64_t>& items = rank->second;
    const auto found = fits ? std::find_if(items.begin(), items.end(), fits) : items.begin();
    if (found == items.end()) continue;
    const int64_t id = *found;
    items.erase(found);
    if (items.empty()) queue_.erase(rank);
    Item& item = items_.at(id);
    ++item.attempts;
    leases_[id] = {holder, item.attempts, grants_++, now};
    held_[holder].insert(id);
    return Grant{id, item.attempts};
  }
  return std::nullopt;
}

void LeaseTable::Heard(const std::string& holder, int64_t now) { heard_[holder] = now; }

bool LeaseTable::Holds(int64_t item, int attempt) const {
  const auto lease = leases_.find(item);
  return lease != leases_.end() && lease->second.attempt == attempt;
}

bool LeaseTable::Holds(const std::string& holder, int64_t item, int attempt) const {
  return Holds(item, attempt) && leases_.at(item).holder == holder;
}

bool LeaseTable::Complete(const std::string& holder, int64_t item, int attempt) {
  if (!Holds(holder, item, attempt)) return false;
  EndLease(item);
  items_.erase(item);
  ++completed_;
  return true;
}

bool LeaseTable::Fail(const std::string& holder, int64_t item, int attempt,
                      const std::string& cause, bool retry) {
  if (!Holds(holder, item, attempt)) return false;
  EndAttempt(item, cause, retry);
  return true;
}

bool LeaseTable::GiveBack(const std::string& holder, int64_t item, int attempt) {
  if (!Holds(holder, item, attempt)) return false;
  GoBack(item);
  return true;
}

void LeaseTable::EndLease(int64_t item) {
  const auto lease = leases_.find(item);
  const auto holder = held_.find(lease->second.holder);
  holder->second.erase(item);
  if (holder->second.empty()) held_.erase(holder);
  leases_.erase(lease);
}

void LeaseTable::EndAttempt(int64_t id, const std::string& cause, bool retry) {
  EndLease(id);
  Item& item = items_.at(id);
  if (retry && ++item.failures < limits_.attempts_max) {
    queue_[item.rank].push_front(id);
    return;
  }
  given_up_.push_back({id, item.attempts, cause});
  items_.erase(id);
}

std::optional<std::pair<std::string, int>> LeaseTable::Withdraw(int64_t id) {
  const auto item = items_.find(id);
  if (item == items_.end()) return std::nullopt;
  std::pair<std::string, int> held("", item->second.attempts);
  const auto lease = leases_.find(id);
  if (lease != leases_.end()) {
    held.first = lease->second.holder;
    EndLease(id);
  } else {
    const auto rank = queue_.find(item->second.rank);
    std::erase(rank->second, id);
    if (rank->second.empty()) queue_.erase(rank);
  }
  items_.erase(item);
  return held;
}

void LeaseTable::GoBack(int64_t id) {
  EndLease(id);
  queue_[items_.at(id).rank].push_front(id);
}

// Whether this loss is part of a failure that was counted already.
bool LeaseTable::CountsAsOne(int64_t id, const std::string& holder, bool at_fault) {
  if (!at_fault) return false;
  Item& item = items_.at(id);
  if (item.failed_with != holder) {
    item.failed_with = holder;
    item.lost_with_it = 0;
  }
  ++item.lost_with_it;
  return item.lost_with_it > 1 && item.lost_with_it <= limits_.same_holder_max;
}

std::vector<Grant> LeaseTable::Lose(const std::string& holder, const std::string& cause,
                                    bool at_fault) {
  std::vector<Grant> held = HeldBy(holder);
  std::sort(held.begin(), held.end(), [this](const Grant& a, const Grant& b) {
    return leases_.at(a.item).grant > leases_.at(b.item).grant;
  });
  for (const Grant& grant : held) {  // the oldest last, so that it goes first again
    if (grant.item != held.back().item || CountsAsOne(grant.item, holder, at_fault)) {
      GoBack(grant.item);
    } else {
      EndAttempt(grant.item, cause, true);
    }
  }
  heard_.erase(holder);
  return held;
}

std::vector<std::string> LeaseTable::Silent(int64_t now) const {
  std::vector<std::string> silent;
  for (const auto& [holder, heard] : heard_) {
    if (now - heard > limits_.silence_max_us && held_.count(holder) > 0) silent.push_back(holder);
  }
  return silent;
}

std::vector<Grant> LeaseTable::HeldBy(const std::string& holder) const {
  std::vector<Grant> held;
  const auto items = held_.find(holder);
  if (items == held_.end()) return held;
  for (const int64_t item : items->second) held.push_back({item, leases_.at(item).attempt});
  return held;
}

std::optional<std::pair<std::string, int>> LeaseTable::HolderOf(int64_t item) const {
  const auto lease = leases_.find(item);
  if (lease == leases_.end()) return std::nullopt;
  return std::pair(lease->second.holder, lease->second.attempt);
}

std::optional<int64_t> LeaseTable::LeasedAt(const std::string& holder, int64_t item) const {
  const auto lease = leases_.find(item);
  if (lease == leases_.end() || lease->second.holder != holder) return std::nullopt;
  return lease->second.since_us;
}

size_t LeaseTable::queued() const {
  size_t count = 0;
  for (const auto& [rank, items] : queue_) count += items.size();
  return count;
}

}  // namespace evald

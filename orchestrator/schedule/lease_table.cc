#include "orchestrator/schedule/lease_table.h"

#include <algorithm>
#include <cassert>

namespace evald {

LeaseTable::Process& LeaseTable::At(Holder holder) {
  const auto at = static_cast<size_t>(holder);
  if (at >= processes_.size()) processes_.resize(at + 1);
  return processes_[at];
}

// ---- queue

void LeaseTable::Queue(int64_t id, Item* item, int64_t place) {
  item->place = place;
  queue_.insert({item->rank, place, id});
}

void LeaseTable::Add(int64_t item, int64_t rank) {
  const bool added = items_.Add(item, Item{rank});
  assert(added && "an item is added once");
  (void)added;
  Queue(item, &items_.at(item), ++last_place_);
}

Grant LeaseTable::AddLeased(int64_t item, int64_t rank, Holder holder, int64_t now) {
  const bool added = items_.Add(item, Item{rank});
  assert(added && "an item is added once");
  (void)added;
  return Give(item, &items_.at(item), holder, now);
}

std::optional<Grant> LeaseTable::Lease(Holder holder, int64_t now,
                                       const std::function<bool(int64_t item)>& fits) {
  Heard(holder, now);
  const auto found = fits ? std::find_if(queue_.begin(), queue_.end(),
                                         [&](const Queued& queued) { return fits(queued.item); })
                          : queue_.begin();
  if (found == queue_.end()) return std::nullopt;
  const int64_t id = found->item;
  queue_.erase(found);
  return Give(id, &items_.at(id), holder, now);
}

Grant LeaseTable::Give(int64_t id, Item* item, Holder holder, int64_t now) {
  Process& process = At(holder);
  process.heard_us = now;
  std::vector<int64_t>& held = process.items;
  held.insert(std::upper_bound(held.begin(), held.end(), id), id);
  ++item->attempts;
  item->holder = holder;
  item->grant = grants_++;
  item->since_us = now;
  ++leased_;
  return {id, item->attempts};
}

void LeaseTable::Heard(Holder holder, int64_t now) { At(holder).heard_us = now; }

// ---- reports

bool LeaseTable::Holds(int64_t item, int attempt) const {
  const Item* of = items_.Find(item);
  return of != nullptr && of->holder != kNobody && of->attempts == attempt;
}

bool LeaseTable::Holds(Holder holder, int64_t item, int attempt) const {
  const Item* of = HeldItem(holder, item);
  return of != nullptr && of->attempts == attempt;
}

const LeaseTable::Item* LeaseTable::HeldItem(Holder holder, int64_t item) const {
  const Item* of = items_.Find(item);
  return of != nullptr && holder != kNobody && of->holder == holder ? of : nullptr;
}

bool LeaseTable::Complete(Holder holder, int64_t item, int attempt) {
  if (!Holds(holder, item, attempt)) return false;
  EndLease(item, &items_.at(item));
  items_.Erase(item);
  ++completed_;
  return true;
}

bool LeaseTable::Fail(Holder holder, int64_t item, int attempt, const std::string& cause,
                      bool retry) {
  if (!Holds(holder, item, attempt)) return false;
  EndAttempt(item, cause, retry);
  return true;
}

bool LeaseTable::GiveBack(Holder holder, int64_t item, int attempt) {
  if (!Holds(holder, item, attempt)) return false;
  GoBack(item);
  return true;
}

void LeaseTable::EndLease(int64_t id, Item* item) {
  std::vector<int64_t>& held = At(item->holder).items;
  held.erase(std::lower_bound(held.begin(), held.end(), id));
  item->holder = kNobody;
  --leased_;
}

void LeaseTable::EndAttempt(int64_t id, const std::string& cause, bool retry) {
  Item& item = items_.at(id);
  EndLease(id, &item);
  if (retry && ++item.failures < limits_.attempts_max) return Queue(id, &item, --first_place_);
  given_up_.push_back({id, item.attempts, cause});
  items_.Erase(id);
}

std::optional<std::pair<Holder, int>> LeaseTable::Revoke(int64_t id) {
  Item* item = items_.Find(id);
  if (item == nullptr) return std::nullopt;
  const std::pair<Holder, int> held(item->holder, item->attempts);
  if (item->holder != kNobody) {
    EndLease(id, item);
  } else {
    queue_.erase({item->rank, item->place, id});
  }
  items_.Erase(id);
  return held;
}

void LeaseTable::GoBack(int64_t id) {
  Item& item = items_.at(id);
  EndLease(id, &item);
  Queue(id, &item, --first_place_);
}

// ---- holders

// Whether this loss is no failure of the item, or belongs to one that was already counted.
bool LeaseTable::Excused(int64_t id, Holder holder, Suspect suspect) {
  if (suspect == Suspect::kItem) return false;
  Item& item = items_.at(id);
  if (suspect == Suspect::kHost)
    return ++item.lost_with_hosts <= limits_.host_losses_max * (limits_.attempts_max - 1);
  if (item.failed_with != holder) {
    item.failed_with = holder;
    item.lost_with_it = 0;
  }
  ++item.lost_with_it;
  return item.lost_with_it > 1 && item.lost_with_it <= limits_.same_holder_max;
}

std::vector<Grant> LeaseTable::Lose(Holder holder, const std::string& cause, Suspect suspect) {
  std::vector<Grant> held = HeldBy(holder);
  std::sort(held.begin(), held.end(), [this](const Grant& a, const Grant& b) {
    return items_.at(a.item).grant > items_.at(b.item).grant;
  });
  for (const Grant& grant : held) {  // the oldest last, so that it goes first again
    if (grant.item != held.back().item || Excused(grant.item, holder, suspect)) {
      GoBack(grant.item);
    } else {
      EndAttempt(grant.item, cause, true);
    }
  }
  At(holder).heard_us.reset();
  return held;
}

std::vector<Holder> LeaseTable::Silent(int64_t now) const {
  std::vector<Holder> silent;
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    if (process.heard_us && now - *process.heard_us > limits_.silence_max_us &&
        !process.items.empty())
      silent.push_back(static_cast<Holder>(i));
  }
  return silent;
}

std::vector<Grant> LeaseTable::HeldBy(Holder holder) const {
  std::vector<Grant> grants;
  for (const int64_t item : ItemsOf(holder)) grants.push_back({item, items_.at(item).attempts});
  return grants;
}

std::span<const int64_t> LeaseTable::ItemsOf(Holder holder) const {
  const auto at = static_cast<size_t>(holder);
  if (at >= processes_.size()) return {};
  return processes_[at].items;
}

std::optional<std::pair<Holder, int>> LeaseTable::HolderOf(int64_t item) const {
  const Item* of = items_.Find(item);
  if (of == nullptr || of->holder == kNobody) return std::nullopt;
  return std::pair(of->holder, of->attempts);
}

std::optional<int64_t> LeaseTable::LeasedAt(Holder holder, int64_t item) const {
  const Item* of = HeldItem(holder, item);
  return of == nullptr ? std::nullopt : std::optional(of->since_us);
}

bool LeaseTable::leased(int64_t item) const {
  const Item* of = items_.Find(item);
  return of != nullptr && of->holder != kNobody;
}

}  // namespace evald

#include "orchestrator/watch/scan_turns.h"

#include <chrono>

namespace evald {
namespace {

constexpr std::chrono::milliseconds kEndingIsSeenWithin{200};

}  // namespace

std::shared_ptr<void> ScanTurns::Wait(const std::string& user, const std::atomic<bool>& ending) {
  std::unique_lock lock(mutex_);
  const auto own = waiting_.insert(waiting_.end(), user);
  while (!ending && !MayGo(own)) changed_.wait_for(lock, kEndingIsSeenWithin);
  waiting_.erase(own);
  changed_.notify_all();
  if (ending) return nullptr;
  at_work_.insert(user);
  return {this, [user](ScanTurns* turns) { turns->Leave(user); }};
}

// Whether it may go: no one who came before may.
bool ScanTurns::MayGo(Waiting::const_iterator who) const {
  if (at_work_.size() >= at_once_ || at_work_.contains(*who)) return false;
  for (auto before = waiting_.begin(); before != who; ++before) {
    if (!at_work_.contains(*before)) return false;
  }
  return true;
}

void ScanTurns::Leave(const std::string& user) {
  const std::lock_guard lock(mutex_);
  at_work_.erase(user);
  changed_.notify_all();
}

}  // namespace evald

#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace evald {

/// Who may look through a watched folder now: few watches at a time, and one of each user, in the
/// order in which they came. So many watches cost no more than a few threads' work, and a file
/// system that hangs holds up the watches of its own user only, until users of that kind hold all
/// places. Any thread.
class ScanTurns {
 public:
  explicit ScanTurns(size_t at_once) : at_once_(at_once) {}

  /// Waits for a turn of `user` and gives it; the turn is over when the last copy of it goes.
  /// Nothing where `ending` was set before the turn came. This outlives the turn.
  std::shared_ptr<void> Wait(const std::string& user, const std::atomic<bool>& ending);

 private:
  using Waiting = std::list<std::string>;
  bool MayGo(Waiting::const_iterator who) const;
  void Leave(const std::string& user);

  const size_t at_once_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Waiting waiting_;                // users, in the order in which they came
  std::set<std::string> at_work_;  // users
};

}  // namespace evald

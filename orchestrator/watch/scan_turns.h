#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace evald {

/// Lets few watches at a time look through their folders, and one watch of each user, in the order
/// in which they came. So many watches cost only a few threads' work. A hanging file system holds
/// up the watches of its own user only, unless such users hold all places. Any thread.
class ScanTurns {
 public:
  explicit ScanTurns(size_t at_once) : at_once_(at_once) {}

  /// Waits for a turn of `user` and returns it. The turn ends when its last copy is destroyed.
  /// Nothing if `ending` is set before the turn comes. This object outlives the turn.
  std::shared_ptr<void> Wait(const std::string& user, const std::atomic<bool>& ending);

 private:
  using Waiting = std::list<std::string>;
  bool MayGo(Waiting::const_iterator who) const;
  void Leave(const std::string& user);

  const size_t at_once_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Waiting waiting_;                // users in the order in which they came
  std::set<std::string> at_work_;  // users
};

}  // namespace evald

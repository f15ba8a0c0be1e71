#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace evald::sandbox {

/// The folder with the locks for the turns of one user's programs (HostTurn). Only this user can
/// enter it, so no one else can hold a lock in it. Any thread.
class TurnFolder {
 public:
  /// Uses the first of `candidates` that is usable: made with mode 0700 if it is missing, otherwise
  /// owned by this user, with mode 0700 and no link. If none is usable, the log says why, and turns
  /// exclude nothing. A wait gives up `patience_us` after a turn should have ended.
  explicit TurnFolder(const std::vector<std::filesystem::path>& candidates,
                      int64_t patience_us = 60'000'000);
  ~TurnFolder();

  bool usable() const { return folder_.get() >= 0; }
  const std::filesystem::path& path() const { return path_; }

 private:
  friend class HostTurn;
  struct Page;  ///< shared by all processes of the user

  std::filesystem::path path_;
  UniqueFd folder_;
  std::unique_ptr<Page> page_;
  int64_t patience_us_;
};

/// /dev/shm/evald-turns-<uid>, and two more for hosts on which that name is taken.
std::vector<std::filesystem::path> DefaultTurnFolders();

/// Turns of this user's programs on this host. Any number run at a time, each with a shared turn.
/// If the clock ended a program and the cause is unclear, the program runs again in an exclusive
/// turn, while no other evald sandbox of this user runs anything. So its verdict does not depend on
/// evald's own load. Programs of other users are not waited for: they are load of the machine like
/// any other, and a lock that several users share could be held forever by each of them.
///
/// Exclusive turns are taken in the order of the requests. After each of them, shared turns get as
/// much time as it kept them waiting (`longest_us` at most). So exclusive turns together take at
/// most half of the time.
///
/// There are three locks in the user's folder, which the kernel frees with the process. "queue" has
/// one locked byte for each waiting exclusive turn; the byte's number is the place in the queue.
/// "gate" is closed by an exclusive turn, so that no shared turn begins. "turn" is held by every
/// turn. One object per thread.
class HostTurn {
 public:
  /// Waits as long as others may hold their turns: each turn says how long it may last
  /// (`longest_us`). Throws Error(kInfrastructure) if one lasts longer by the folder's patience.
  static HostTurn Shared(const TurnFolder& folder, int64_t longest_us) {
    return HostTurn(folder, false, longest_us);
  }
  static HostTurn Alone(const TurnFolder& folder, int64_t longest_us) {
    return HostTurn(folder, true, longest_us);
  }
  ~HostTurn();
  HostTurn(const HostTurn&) = delete;
  HostTurn& operator=(const HostTurn&) = delete;

 private:
  HostTurn(const TurnFolder& folder, bool alone, int64_t longest_us);
  UniqueFd AwaitOwnPlace(int64_t longest_us) const;
  UniqueFd Lock(const char* name, int operation) const;
  void CheckPatience(const char* name, int64_t begun_us) const;

  const TurnFolder& folder_;
  UniqueFd place_;  ///< the place in the queue
  UniqueFd gate_;
  UniqueFd turn_;
  /// Since when an exclusive turn keeps others waiting; 0 for a shared turn
  int64_t closed_us_ = 0;
};

}  // namespace evald::sandbox

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace evald::sandbox {

/// Where the turns of one user's programs are kept (HostTurn): a folder that only this user can
/// enter, so that nobody else can hold a lock in it. Any thread.
class TurnFolder {
 public:
  /// The first of `candidates` that can be had: made with mode 0700 where it is missing, else owned
  /// by this user, of mode 0700 and no link. Where none can be had, the log says why and turns
  /// exclude nobody. A wait gives up `patience_us` after a turn should have ended.
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

/// Turns of this user's programs on this host. Any number runs at a time, each holding a shared
/// turn. A program that the clock ended for a cause that is not clear is run again in an exclusive
/// turn, while no other evald sandbox of this user runs anything, so that its verdict does not
/// depend on evald's own load. Programs of other users are not waited for: they are load of the
/// machine like any other, and a lock that several users share is one that each of them can keep.
///
/// Exclusive turns are taken in the order in which they were asked for. After each the shared ones
/// have as much time as it kept them waiting (`longest_us` at most), so all exclusive turns
/// together take at most half of the time.
///
/// Three locks in the user's folder, which the kernel frees with the process. A byte of "queue" is
/// locked for each exclusive turn that is waited for; its number is the place in the queue. "gate"
/// is closed by an exclusive turn, so that no shared one begins; "turn" is held by every turn. One
/// object per thread.
class HostTurn {
 public:
  /// Waits for as long as others may hold theirs: each turn says how long it may last at most
  /// (`longest_us`). Throws Error(kInfrastructure) when one lasts longer, by the folder's patience.
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
  UniqueFd place_;  ///< in the queue
  UniqueFd gate_;
  UniqueFd turn_;
  int64_t closed_us_ =
      0;  ///< since when an exclusive turn keeps others waiting; 0 for a shared one
};

}  // namespace evald::sandbox

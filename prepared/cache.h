#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"

namespace evald {

/// Makes the cache's folders. Prepared tasks are trusted when they are found again, so only this
/// user may write there. Throws Error(kUsage) for a folder of another user.
void MakePreparedCache(const std::filesystem::path& cache_dir);

/// The list of the prepared tasks that a run uses. No process removes these tasks from the cache
/// while this object lives. The list is a file with a flock, so the kernel ends the hold with the
/// process, however it ends. The next process that makes room then removes the list.
class PreparedUse {
 public:
  /// Makes an empty list in the cache. Throws Error(kUsage) as MakePreparedCache does, and
  /// Error(kInfrastructure).
  explicit PreparedUse(const std::filesystem::path& cache_dir);
  ~PreparedUse();
  PreparedUse(const PreparedUse&) = delete;
  PreparedUse& operator=(const PreparedUse&) = delete;

  /// The list. The process that prepares the run's tasks adds their keys to this file.
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  UniqueFd lock_;
};

/// Keeps a cache of prepared tasks within its bound, for one run. Many processes may do so at once.
/// Not thread-safe.
class CacheKeeper {
 public:
  /// `use`: PreparedUse::file() of the run. If it is empty, no task is held for the run.
  CacheKeeper(std::filesystem::path cache_dir, std::filesystem::path use, uint64_t bytes_max);

  /// Holds the task of this key for the run, whether it is in the cache yet or not. Call it before
  /// the task is looked for.
  void Hold(const std::string& key);

  /// Call it when the held task has been prepared. If the cache exceeds its bound, remains of
  /// processes that were killed are removed, and then the tasks that no run uses, those that were
  /// used least recently first, until a sixteenth of the bound is free. If the tasks in use alone
  /// exceed the bound, throws Error(kInput) if those of this run do, otherwise
  /// Error(kInfrastructure). `task` names the task in that error.
  void MakeSpace(const std::string& key, std::string_view task);

 private:
  std::filesystem::path cache_dir_;
  std::filesystem::path use_;
  uint64_t bytes_max_;
  bool looked_ = false;       // the cache was measured by this object
  uint64_t bytes_ = 0;        // by the last measurement, and of tasks prepared since
  uint64_t bytes_since_ = 0;  // of tasks prepared since
};

/// Removes a prepared task. If this process is killed meanwhile, other processes find the task
/// either whole or gone. A process that has the task's files open keeps them.
void RemovePrepared(const std::filesystem::path& folder);

}  // namespace evald

#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/file.h"
#include "orchestrator/staging/identity.h"

namespace evald {

/// The right to look for room in a staging root and take it: one process or thread at a time, so
/// that two never count on the same bytes. A flock on the folder itself, which ends with its
/// process. Throws the Error of a cancelled staging when `cancel` is set while it waits.
class RoomTurn {
 public:
  RoomTurn(const std::filesystem::path& root, const std::atomic<bool>* cancel);

 private:
  UniqueFd folder_;
};

/// Makes every file of `files` below `target` (folders of its name too) at its length. The files
/// must not exist. Throws Error(kInfrastructure).
void MakeTree(const std::vector<FileStamp>& files, const std::filesystem::path& target);

/// Takes the room of the files that MakeTree made, where the file system can (fallocate), so that
/// no later write finds it full. A thread of its own does it, several times as fast as a copy
/// writes, so that reading need not wait; it holds the turn until all is taken.
class Reservation {
 public:
  Reservation(RoomTurn turn, std::vector<FileStamp> files, std::filesystem::path target,
              uint64_t bytes_needed);
  ~Reservation();  ///< gives up what is not yet taken

  /// Throws Error(kInfrastructure) when it has failed: for lack of room as ThrowShortage does, with
  /// `bytes_needed`; `target` is then gone.
  void Check() const;
  /// Waits for the end, then as Check.
  void Finish();

 private:
  void Take(const std::vector<FileStamp>& files) const;

  std::optional<RoomTurn> turn_;
  const std::filesystem::path target_;
  const uint64_t bytes_needed_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  ///< written before failed_
  std::thread thread_;
};

/// How much of a file that MakeTree made has been written, by a writer that goes from its begin
/// to its end: up to the first chunk without data, as far as the file system tells.
uint64_t BytesWritten(const std::filesystem::path& path);

}  // namespace evald

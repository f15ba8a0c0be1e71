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

/// The right to look for free space in a staging root and take it. One process or thread has it at
/// a time, so that two never count the same bytes. It is a flock on the folder itself, which ends
/// with its process. Throws the Error of a cancelled staging if `cancel` is set while it waits.
class SpaceTurn {
 public:
  SpaceTurn(const std::filesystem::path& root, const std::atomic<bool>* cancel);

 private:
  UniqueFd folder_;
};

/// Makes every file of `files` below `target` with its final length, and the folders in its name.
/// The files must not exist. Throws Error(kInfrastructure).
void MakeTree(const std::vector<FileStamp>& files, const std::filesystem::path& target);

/// Takes the space of the files that MakeTree made, if the file system can (fallocate), so that no
/// later write finds the file system full. A thread of its own does this several times as fast as a
/// copy writes, so reading need not wait. The thread holds the turn until all space is taken.
class Reservation {
 public:
  Reservation(SpaceTurn turn, std::vector<FileStamp> files, std::filesystem::path target,
              uint64_t bytes_needed);
  ~Reservation();  ///< gives up the space not taken yet

  /// Throws Error(kInfrastructure) if taking the space has failed. If there is too little, throws
  /// like ThrowShortage with `bytes_needed`, and `target` is gone.
  void Check() const;
  /// Waits for the end, then does as Check.
  void Finish();

 private:
  void Take(const std::vector<FileStamp>& files) const;

  std::optional<SpaceTurn> turn_;
  const std::filesystem::path target_;
  const uint64_t bytes_needed_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  ///< written before failed_
  std::thread thread_;
};

/// The bytes written so far to a file that MakeTree made, by a writer that goes from begin to end:
/// everything up to the first chunk without data, as far as the file system tells.
uint64_t BytesWritten(const std::filesystem::path& path);

}  // namespace evald

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/lease.h"
#include "orchestrator/staging/flock.h"
#include "orchestrator/staging/memo.h"

namespace evald {

/// `/dev/shm/evald-<effective uid>`.
std::filesystem::path DefaultStagingRoot();

/// One staged checkpoint as `evald stage --list` shows it.
struct StagedInfo {
  std::string fingerprint;
  std::string source;  ///< the folder that it was first staged from
  uint64_t bytes = 0;
  double last_used = 0;  ///< seconds since 1970
  int leases = 0;        ///< number of leases, as far as /proc/locks shows; at least
  bool kept = false;     ///< stays without a lease (staging.keep, or `evald stage`)
};

Json ToJson(const StagedInfo& info);

/// The folder of staged checkpoints, with their names, locks and lifetimes (docs/staging.md). Any
/// number of processes of one user may work in one root at once. Every method may be called by any
/// of them at any time.
class StagingRoot {
 public:
  /// Makes the folder (mode 0700) if it is not there. Throws Error(kUsage) unless it is this user's
  /// own (base/own_folder.h).
  explicit StagingRoot(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path FolderOf(const std::string& fingerprint) const {
    return path_ / fingerprint;
  }
  /// The folder into which the source of that identity is copied before it is published.
  std::filesystem::path StagingFolderOf(const std::string& source_id) const;
  /// The right to stage that source. Nothing if another process is staging it. The remains of a
  /// killed process in the staging folder are removed first.
  std::optional<OwnerLock> TryOwn(const std::string& source_id) const;

  /// Turns a complete staging folder into the staged checkpoint of `record`, and leases it: makes
  /// files 0444 and folders 0555, adds record and lease file, then renames once. If that content is
  /// staged already (from another source), leases that copy and removes the folder.
  StagedLease Publish(const std::filesystem::path& staging, const StagedRecord& record) const;

  /// A lease on the checkpoint staged as `fingerprint`. Nothing if it is not staged or is being
  /// dropped. A copy whose files have lost bytes is dropped, too. Throws Error(kInfrastructure) if
  /// such a copy is in use.
  std::optional<StagedLease> Lease(const std::string& fingerprint) const;
  /// The record in a staged folder. Nothing if it is gone or unreadable.
  std::optional<StagedRecord> RecordOf(const std::string& fingerprint) const;
  /// The staged checkpoint that was made from that source. Nothing if there is none.
  std::optional<StagedRecord> FindSource(const std::string& source_id) const;

  /// All staged checkpoints, least recently used first.
  std::vector<StagedInfo> List() const;
  /// Removes a staged checkpoint that is not leased. Returns whether it was there and was removed.
  bool Drop(const std::string& fingerprint) const;
  /// Lets the checkpoint stay without a lease, and marks it as just used.
  void Keep(const std::string& fingerprint) const;
  void MarkUsed(const std::string& fingerprint) const;
  bool IsKept(const std::string& fingerprint) const;
  /// Drops kept checkpoints without leases, least recently used first, until the kept ones hold at
  /// most `budget` bytes together.
  void ShrinkKept(uint64_t budget) const;
  /// Drops the least recently used checkpoint without a lease. Returns whether there was one.
  bool DropLeastRecentlyUsed() const;

  /// Removes the remains of killed processes: half-staged folders without a living owner,
  /// half-dropped folders, and staged checkpoints that are neither leased nor kept.
  void Reap() const;

 private:
  std::filesystem::path KeptFileOf(const std::string& fingerprint) const;
  std::vector<std::string> Fingerprints() const;

  std::filesystem::path path_;
};

/// Removes a folder with all its content, read-only parts too. Logs parts that cannot be removed.
void RemoveTree(const std::filesystem::path& path);

}  // namespace evald

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
  std::string source;  ///< the folder it was first staged from
  uint64_t bytes = 0;
  double last_used = 0;  ///< seconds since 1970
  int leases = 0;        ///< how many hold it, as far as /proc/locks shows; at least
  bool kept = false;     ///< stays without a lease (staging.keep, or `evald stage`)
};

Json ToJson(const StagedInfo& info);

/// The folder that holds staged checkpoints: its names, locks and the life of what lies in it
/// (docs/staging.md). Any number of processes of one user work in one root at once; every method
/// may be called by any of them at any time.
class StagingRoot {
 public:
  /// Makes the folder (mode 0700) when it is not there. Throws Error(kUsage) unless it is this
  /// user's own (base/own_folder.h).
  explicit StagingRoot(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path FolderOf(const std::string& fingerprint) const {
    return path_ / fingerprint;
  }
  /// Where the source of that identity is copied to before it is published.
  std::filesystem::path StagingFolderOf(const std::string& source_id) const;
  /// The right to stage that source: nothing when another process is at it. What a killed process
  /// had left under the staging folder is gone when it is given.
  std::optional<OwnerLock> TryOwn(const std::string& source_id) const;

  /// Turns a complete staging folder into the staged checkpoint of `record` and gives a lease on
  /// it: files 0444, folders 0555, record and lease file added, then one rename. Where that content
  /// is staged already (from another source), that one is leased and the folder removed.
  StagedLease Publish(const std::filesystem::path& staging, const StagedRecord& record) const;

  /// A lease on what is staged under `fingerprint`; nothing when it is not, or is being dropped. A
  /// copy whose files are not as long as they were is dropped, too. Throws Error(kInfrastructure)
  /// when such a copy is in use.
  std::optional<StagedLease> Lease(const std::string& fingerprint) const;
  /// The record in a staged folder; nothing when it is gone or unreadable.
  std::optional<StagedRecord> RecordOf(const std::string& fingerprint) const;
  /// The staged checkpoint that was made from that source; nothing when there is none.
  std::optional<StagedRecord> FindSource(const std::string& source_id) const;

  /// All staged checkpoints, least recently used first.
  std::vector<StagedInfo> List() const;
  /// Removes a staged checkpoint unless it is leased or not there. Gives whether it did.
  bool Drop(const std::string& fingerprint) const;
  /// Lets it stay without a lease, and marks it as just used.
  void Keep(const std::string& fingerprint) const;
  void MarkUsed(const std::string& fingerprint) const;
  bool IsKept(const std::string& fingerprint) const;
  /// Drops kept, unleased checkpoints, least recently used first, until they hold at most `budget`
  /// bytes together.
  void ShrinkKept(uint64_t budget) const;
  /// Drops the least recently used one without a lease. Gives whether there was one.
  bool DropLeastRecentlyUsed() const;

  /// Removes what killed processes left: half-staged folders without a living owner, half-dropped
  /// ones, and staged checkpoints that are neither leased nor kept.
  void Reap() const;

 private:
  std::filesystem::path KeptFileOf(const std::string& fingerprint) const;
  std::vector<std::string> Fingerprints() const;

  std::filesystem::path path_;
};

/// Removes a folder with all in it, read-only parts too. What cannot be removed is logged.
void RemoveTree(const std::filesystem::path& path);

}  // namespace evald

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/lease.h"
#include "evald/json.h"
#include "orchestrator/staging/root.h"

namespace evald {

/// The facts of one staging, for the log, the timeline and run.json.
struct StageReport {
  uint64_t bytes = 0;         ///< of the checkpoint
  uint64_t bytes_read = 0;    ///< from storage; 0 if it was staged already
  uint64_t bytes_direct = 0;  ///< of these, bytes read with O_DIRECT
  bool reused = false;        ///< it was staged already, or another process staged it meanwhile
  bool waited = false;        ///< another process was staging it
  bool verified = false;
  int threads = 0;
  double seconds = 0;
  std::vector<std::string> skipped;  ///< other files of the folder, not staged (if not reused)
};

Json ToJson(const StageReport& report);

/// A staged checkpoint and a lease on it. While the lease is held, no one drops the folder.
/// Movable; one thread at a time.
class StagedCheckpoint {
 public:
  StagedCheckpoint(StagingRoot root, std::string fingerprint, StagedLease lease,
                   uint64_t keep_bytes, StageReport report);
  StagedCheckpoint(StagedCheckpoint&&) noexcept;
  StagedCheckpoint& operator=(StagedCheckpoint&&) = delete;
  /// Releases the lease. Errors are logged.
  ~StagedCheckpoint();

  const std::filesystem::path& directory() const { return directory_; }
  const std::string& fingerprint() const { return fingerprint_; }
  const StageReport& report() const { return report_; }

  /// Gives the lease back. Call it after all processes that use the folder have ended. If no one
  /// else leases the checkpoint: it is kept if it fits the budget (`keep_bytes`; others go first,
  /// least recently used first); left alone if it was kept before and the budget is 0; otherwise
  /// dropped. Returns whether it was dropped. A second call does nothing.
  bool Release();

 private:
  StagingRoot root_;
  std::string fingerprint_;
  std::filesystem::path directory_;
  StagedLease lease_;
  uint64_t keep_bytes_ = 0;
  StageReport report_;
  bool held_ = true;
};

}  // namespace evald

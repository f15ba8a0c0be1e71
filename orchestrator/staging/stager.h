#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/landed.h"
#include "checkpoint/layout.h"
#include "checkpoint/lease.h"
#include "evald/json.h"
#include "orchestrator/staging/copy.h"
#include "orchestrator/staging/memo.h"
#include "orchestrator/staging/root.h"

/// Staging: a checkpoint is copied once per host into shared memory, where every process of that
/// host opens it as an ordinary Hugging Face folder. On-disk layout, locks and the fingerprint's
/// formula: docs/staging.md.
namespace evald {

struct StagerOptions {
  std::filesystem::path root;   ///< empty: DefaultStagingRoot()
  std::filesystem::path state;  ///< the memo is kept in `state/staging`; empty: no memo
  uint64_t keep_bytes = 0;      ///< what may stay without a lease, all checkpoints together
  bool verify = false;          ///< trust no memo: read source and copy again and compare
  ReadRoots roots;              ///< below which sources lie
  CopyOptions copy;
};

/// What staging did, for the log, the timeline and run.json.
struct StageReport {
  uint64_t bytes = 0;         ///< of the checkpoint
  uint64_t bytes_read = 0;    ///< from storage; 0 when it was staged already
  uint64_t bytes_direct = 0;  ///< of these, with O_DIRECT
  bool reused = false;        ///< it was staged already, or another process staged it meanwhile
  bool waited = false;        ///< for another process that was staging it
  bool verified = false;
  int threads = 0;
  double seconds = 0;
  std::vector<std::string> skipped;  ///< what lies beside it and was not staged (when not reused)
};

Json ToJson(const StageReport& report);

/// A staged checkpoint and a lease on it: while it is held, nobody drops the folder. Movable; one
/// thread at a time.
class StagedCheckpoint {
 public:
  StagedCheckpoint(StagingRoot root, std::string fingerprint, StagedLease lease,
                   uint64_t keep_bytes, StageReport report);
  StagedCheckpoint(StagedCheckpoint&&) noexcept;
  StagedCheckpoint& operator=(StagedCheckpoint&&) = delete;
  /// Releases; errors are logged.
  ~StagedCheckpoint();

  const std::filesystem::path& directory() const { return directory_; }
  const std::string& fingerprint() const { return fingerprint_; }
  const StageReport& report() const { return report_; }

  /// Gives the lease back; call it after all processes that use the folder have ended. Unless
  /// somebody else leases it: it is kept when it fits the budget (`keep_bytes`; others go first,
  /// least recently used first), left alone when it was kept before and the budget is 0, and else
  /// dropped. Gives whether it was dropped. A second call does nothing.
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

/// Stages checkpoints into one root. Stateless between calls but for the options; several threads
/// may call Stage at once.
class Stager {
 public:
  /// Makes the root. Throws as StagingRoot does.
  explicit Stager(StagerOptions options);

  /// Gives the staged copy of the checkpoint in folder `source`, which is opened once, at the
  /// start: what is staged is what was opened then, whatever its name stands for later. In this
  /// order: what is known to be staged already is leased, reading nothing; when another process is
  /// staging the same source it is waited for (`progress` shows how far it is); what killed
  /// processes left is removed; layout, shard headers and room are checked; then the files are
  /// copied, checked again and published. Meanwhile others may follow what lands
  /// (checkpoint/landed.h). For `hooks` see copy.h.
  ///
  /// Throws Error(kInput) for a checkpoint that is not whole or changes meanwhile,
  /// Error(kInfrastructure) for too little room (both numbers and a remedy), I/O errors and
  /// cancelling. Whatever is thrown, nothing half-staged stays.
  StagedCheckpoint Stage(const std::filesystem::path& source, const CopyHooks& hooks = {}) const;

  /// Whether staging `source` would find room now: it is staged already, or what it takes is free
  /// or held by checkpoints that nobody leases. A look, not a promise: another process may take the
  /// room meanwhile. Throws Error(kInput) for a checkpoint that is not whole.
  bool HasRoom(const std::filesystem::path& source) const;

  const StagingRoot& root() const { return root_; }

 private:
  struct Attempt;
  std::optional<StagedCheckpoint> Reuse(const Attempt& attempt) const;
  StagedCheckpoint CopyAndPublish(const Attempt& attempt) const;
  CopyResult CopyIntoRoom(const Attempt& attempt, const CheckpointLayout& layout,
                          std::optional<LandedWriter>* landed) const;
  CopyResult Copy(const Attempt& attempt, const CheckpointLayout& layout,
                  std::optional<LandedWriter>* landed) const;
  std::optional<StagedRecord> Known(const std::string& source_id, const ReadFolder& source) const;
  uint64_t Droppable() const;
  void MakeRoom(uint64_t bytes) const;
  void ShowOther(const Attempt& attempt) const;

  StagerOptions options_;
  StagingRoot root_;
  StagingMemo memo_;
};

/// What lies in a root (`evald stage --list`), least recently used first. A root that is not there
/// holds nothing.
std::vector<StagedInfo> ListStaged(const std::filesystem::path& root);

struct DropResult {
  std::vector<std::string> dropped;  ///< fingerprints
  std::vector<std::string> leased;   ///< still in use, and so not dropped
};

/// Drops one staged checkpoint by its fingerprint or a unique beginning of it, or all with "all"
/// (`evald stage --drop`). Throws Error(kUsage) naming a fingerprint that is not there.
DropResult DropStaged(const std::filesystem::path& root, const std::string& which);

}  // namespace evald

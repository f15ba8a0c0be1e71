#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/landed.h"
#include "checkpoint/layout.h"
#include "orchestrator/staging/copy.h"
#include "orchestrator/staging/memo.h"
#include "orchestrator/staging/root.h"
#include "orchestrator/staging/staged_checkpoint.h"

/// Staging: a checkpoint is copied once per host into shared memory. Every process of that host
/// opens it there as an ordinary Hugging Face folder. docs/staging.md has the on-disk layout, the
/// locks and the fingerprint's formula.
namespace evald {

struct StagerOptions {
  std::filesystem::path root;   ///< empty: DefaultStagingRoot()
  std::filesystem::path state;  ///< the memo is kept in `state/staging`; empty: no memo
  uint64_t keep_bytes = 0;      ///< bytes of all checkpoints that may stay without a lease
  bool verify = false;          ///< trust no memo: read source and copy again, and compare
  ReadRoots roots;              ///< folders below which sources lie
  CopyOptions copy;
};

/// Stages checkpoints into one root. Has no state between calls except its options. Several threads
/// may call Stage at once.
class Stager {
 public:
  /// Makes the root. Throws like StagingRoot.
  explicit Stager(StagerOptions options);

  /// Stages the checkpoint in folder `source` and returns the staged copy. The folder is opened
  /// once, at the start; later changes of its name do not matter. Steps: a copy that is known to be
  /// staged is leased, and nothing is read. If another process is staging the same source, Stage
  /// waits for it (`progress` shows how far it is). Remains of killed processes are removed.
  /// Layout, shard headers and free space are checked. Then the files are copied, checked again and
  /// published. Others may follow the copy meanwhile (checkpoint/landed.h). For `hooks` see copy.h.
  ///
  /// Throws Error(kInput) if the checkpoint is incomplete or changes meanwhile. Throws
  /// Error(kInfrastructure) for too little space (with both numbers and a remedy), I/O errors and
  /// cancelling. After any exception, nothing half-staged stays.
  StagedCheckpoint Stage(const std::filesystem::path& source, const CopyHooks& hooks = {}) const;

  /// Whether there is space to stage `source` now: it is staged already, or the space is free or
  /// held by checkpoints without leases. This is no promise: another process may take the space
  /// meanwhile. Throws Error(kInput) if the checkpoint is incomplete.
  bool HasSpace(const std::filesystem::path& source) const;
  /// Throws Error(kUsage) if `source` does not fit into the root even when that is empty, and
  /// Error(kInput) if it is incomplete.
  void CheckFits(const std::filesystem::path& source) const;

  const StagingRoot& root() const { return root_; }

 private:
  struct Attempt;
  std::optional<StagedCheckpoint> Reuse(const Attempt& attempt) const;
  StagedCheckpoint CopyAndPublish(const Attempt& attempt) const;
  CopyResult CopyIntoSpace(const Attempt& attempt, const CheckpointLayout& layout,
                           std::optional<LandedWriter>* landed) const;
  CopyResult Copy(const Attempt& attempt, const CheckpointLayout& layout,
                  std::optional<LandedWriter>* landed) const;
  std::optional<StagedRecord> Known(const std::string& source_id, const ReadFolder& source) const;
  uint64_t Droppable() const;
  void MakeSpace(uint64_t bytes) const;
  void ShowOther(const Attempt& attempt) const;

  StagerOptions options_;
  StagingRoot root_;
  StagingMemo memo_;
};

/// The staged checkpoints in a root (`evald stage --list`), least recently used first. Empty if
/// there is no such root.
std::vector<StagedInfo> ListStaged(const std::filesystem::path& root);

struct DropResult {
  std::vector<std::string> dropped;  ///< fingerprints
  std::vector<std::string> leased;   ///< still in use, and therefore not dropped
};

/// Drops one staged checkpoint by its fingerprint or a unique beginning of it, or all with "all"
/// (`evald stage --drop`). Throws Error(kUsage) for a fingerprint that is not there.
DropResult DropStaged(const std::filesystem::path& root, const std::string& which);

}  // namespace evald

#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/agent/chunk_shelf.h"
#include "orchestrator/agent/dialer.h"
#include "orchestrator/staging/stager.h"

namespace evald {

/// Stages a checkpoint on this host by its fingerprint. A copy that is staged here already is
/// leased. Otherwise the checkpoint is copied from its own folder, if that is visible here and
/// holds the same files. Otherwise it is fetched, chunk by chunk, from the orchestrator's staged
/// copy or from other agents that the orchestrator names, and published. The hashes of all chunks
/// are known before: they make the fingerprint. Any thread; blocks.
class CheckpointFetch {
 public:
  /// `shelf` gives other agents what is here; it is of the same root. nullptr: nobody gets
  /// anything.
  CheckpointFetch(OrchestratorAddress address, std::string instance, StagerOptions staging,
                  std::shared_ptr<ChunkShelf> shelf = nullptr);

  /// Fails soon while `*cancel` is set. Throws Error: kUsage if the orchestrator refuses,
  /// kInfrastructure if another try may succeed.
  StagedCheckpoint Obtain(const std::string& fingerprint, const std::atomic<bool>* cancel) const;
  /// Whether no checkpoint is staged here that might give up its room later.
  bool NothingStaged() const;

 private:
  StagedCheckpoint Fetch(const std::string& fingerprint, const std::vector<HashedFile>& files,
                         const std::atomic<bool>* cancel) const;
  void CheckWhole(const std::filesystem::path& folder, const std::string& fingerprint,
                  const std::vector<HashedFile>& files, const std::atomic<bool>* cancel) const;
  StagedCheckpoint Wrap(const std::string& fingerprint, StagedLease lease,
                        StageReport report) const;

  OrchestratorAddress address_;
  std::string instance_;
  std::string url_;
  StagerOptions staging_;
  StagingRoot root_;
  std::shared_ptr<ChunkShelf> shelf_;
};

}  // namespace evald

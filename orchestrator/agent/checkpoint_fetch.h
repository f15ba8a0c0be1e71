#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "orchestrator/agent/dialer.h"
#include "orchestrator/staging/stager.h"

namespace evald {

/// Stages a checkpoint on this host by its fingerprint. A copy that is staged here already is
/// leased. Otherwise the checkpoint is copied from its own folder, if that is visible here and
/// holds the same files. Otherwise it is fetched from the orchestrator's staged copy, several
/// ranges at a time, and published if its tree hash is the fingerprint. Any thread; blocks.
class CheckpointFetch {
 public:
  CheckpointFetch(OrchestratorAddress address, const std::string& instance, StagerOptions staging);

  /// Fails soon while `*cancel` is set. Throws Error: kUsage if the orchestrator refuses,
  /// kInfrastructure if another try may succeed.
  StagedCheckpoint Obtain(const std::string& fingerprint, const std::atomic<bool>* cancel) const;

 private:
  struct File {
    std::string name;
    uint64_t bytes = 0;
  };
  StagedCheckpoint Fetch(const std::string& fingerprint, const std::vector<File>& files,
                         const std::atomic<bool>* cancel) const;
  void FetchInto(const std::filesystem::path& folder, const std::string& fingerprint,
                 const std::vector<File>& files, const std::atomic<bool>* cancel) const;
  StagedCheckpoint Wrap(const std::string& fingerprint, StagedLease lease,
                        StageReport report) const;

  OrchestratorAddress address_;
  std::string url_;
  StagerOptions staging_;
  StagingRoot root_;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/prepare/preparation.h"
#include "orchestrator/state/run_store.h"

namespace evald {

/// Files in a run's folder that may be resumed.
struct RecoveredTask {
  std::vector<std::string> salvage;  ///< half-written files, relative to the run's folder
};

struct Recovery {
  RunRecord record;                  ///< with the adopted files in it
  std::vector<RecoveredTask> tasks;  ///< in the suite's order
  int64_t first_trial = 0;           ///< higher than any trial seen
  int adopted_files = 0;             ///< complete files that had no row yet
  int dropped_files = 0;             ///< committed files that were lost or damaged
};

/// Makes the database and the folder of an interrupted run agree. A committed file that is gone, or
/// no longer has its recorded hash, loses its documents. A complete file without a row is adopted
/// for the documents that it holds completely. Half-written generations are listed for salvage.
/// Call it in a transaction, on the store's thread. Throws Error(kInfrastructure).
Recovery RecoverRun(RunStore* store, const std::string& run, const std::filesystem::path& directory,
                    const Suite& suite);

}  // namespace evald

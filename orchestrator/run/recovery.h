#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/run/preparation.h"
#include "orchestrator/state/run_store.h"

namespace evald {

/// What lies in a run's folder and counts, or may be resumed.
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

/// Brings the database and the folder of an interrupted run to agreement: a committed file that is
/// gone or does not have its recorded hash loses its documents; a complete file without a row is
/// adopted for the documents it holds whole; half-written generations are listed for salvage.
/// To be called in a transaction, on the store's thread. Throws Error(kInfrastructure).
Recovery RecoverRun(RunStore* store, const std::string& run, const std::filesystem::path& directory,
                    const Suite& suite);

}  // namespace evald

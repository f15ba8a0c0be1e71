#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/service/run_nodes.h"

namespace evald {

struct RunOptions {
  EvalConfig config;
  std::filesystem::path binaries;  ///< folder of evald-worker and evald-metric
  bool resume = false;
  /// The run to resume; empty: the newest unfinished run of this configuration
  std::string resume_run;
  /// Nodes that compute in place of this host's devices, which then only scores; null: none.
  /// Outlives the run
  RunNodes* nodes = nullptr;
  bool quiet = false;  ///< no progress
  std::string log_level = "warn";
};

/// Evaluates one checkpoint on this machine: stages it, prepares tasks, runs workers and metric
/// processes, commits what they finish, and writes results. First chooses the devices
/// (ChooseWorkers), unless nodes compute. Runs an event loop on the calling thread until done.
/// Takes SIGINT and SIGTERM (once: drain; twice: stop). Throws Error if the run is impossible;
/// later failures are in the outcome.
RunOutcome RunEvaluation(const RunOptions& asked);

}  // namespace evald

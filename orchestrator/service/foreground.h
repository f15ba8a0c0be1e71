#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/run/run_outcome.h"

namespace evald {

struct RunOptions {
  EvalConfig config;
  std::filesystem::path binaries;  ///< folder of evald-worker and evald-metric
  bool resume = false;
  std::string resume_run;  ///< which; empty: the newest unfinished one of this configuration
  bool quiet = false;      ///< no progress
  std::string log_level = "warn";
};

/// Evaluates one checkpoint on this machine: stages it, prepares tasks, runs workers and metric
/// processes, commits what they finish, and writes results. What devices it works on is chosen
/// first (ChooseWorkers). Runs an event loop on the calling thread until done; takes SIGINT and
/// SIGTERM (once: drain; twice: stop). Throws Error for what makes the run impossible; what fails
/// on the way is reported in the outcome.
RunOutcome RunEvaluation(const RunOptions& asked);

}  // namespace evald

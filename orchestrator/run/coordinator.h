#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"

namespace evald {

struct RunOptions {
  EvalConfig config;
  std::filesystem::path binaries;  ///< folder of evald-worker and evald-metric
  bool resume = false;
  std::string resume_run;  ///< which; empty: the newest unfinished one of this configuration
  bool quiet = false;      ///< no progress
  std::string log_level = "warn";
};

/// How a run ended.
struct RunOutcome {
  ExitStatus status = ExitStatus::kDone;
  std::filesystem::path directory;
  Json results;                       ///< results.json; null when the run was interrupted
  std::vector<std::string> problems;  ///< why it is incomplete, for people
  double seconds = 0;
  double device_share = 0;            ///< mean share of time in which the devices computed
};

/// Evaluates one checkpoint on this machine: stages it, prepares tasks, runs workers and metric
/// processes, commits what they finish, and writes results. Runs an event loop on the calling thread
/// until done; takes SIGINT and SIGTERM (once: drain; twice: stop). Throws Error for what makes the
/// run impossible; what fails on the way is reported in the outcome.
RunOutcome RunEvaluation(const RunOptions& options);

}  // namespace evald

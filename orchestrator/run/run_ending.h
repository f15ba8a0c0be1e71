#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/error.h"
#include "orchestrator/report/timeline.h"
#include "orchestrator/run/run_directory.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/run/run_results.h"
#include "orchestrator/state/database_thread.h"

namespace evald {

class RunCosts;
struct CostPlace;

/// A run that is over, with all data for its last files. The caller of EndRun owns it, on any
/// thread.
struct RunEnding {
  RunDirectory directory;  ///< holds the run's lock, which goes with the ending
  EvalConfig config;
  std::shared_ptr<const Suite> suite;
  bool planned = false;
  bool complete = false;  ///< every document is scored, and nothing failed
  bool cancelled = false;
  /// The missing documents can never be answered: another attempt would not help
  bool refused = false;
  std::optional<ErrorKind> failure;
  std::vector<std::string> problems;
  RunRecord record;
  std::map<size_t, TaskResult> finished;  ///< by the task's place in the suite
  Json engine, isolation;
  std::string fingerprint;
  WorkDone earlier;
  Timeline timeline;
  int64_t begin_us = 0, end_us = 0;
  std::shared_ptr<const RunCosts> costs;
  std::shared_ptr<const CostPlace> place;
  std::map<std::string, Json> generation;  ///< by task: the generation settings in force
  DatabaseThread* database = nullptr;      ///< for the measured costs
};

/// Ends a run: writes timeline.json, results.json (or kIncompleteResults) and run.json. Waits for
/// the disk. Throws Error if results or run.json cannot be written.
RunOutcome EndRun(RunEnding ending);

}  // namespace evald

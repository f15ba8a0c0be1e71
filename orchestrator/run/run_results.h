#pragma once

#include <map>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/prepare/preparation.h"
#include "orchestrator/run/run_directory.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/run/task_finisher.h"
#include "orchestrator/state/run_store.h"

namespace evald {

/// Answered requests and their tokens.
struct WorkDone {
  int64_t requests = 0, tokens_in = 0, tokens_out = 0;
};

/// The work of all committed generations.
WorkDone WorkOf(const RunRecord& record);

/// The input of a run's results.
struct RunResultsInput {
  const EvalConfig& config;
  const RunDirectory& directory;
  const Suite& suite;
  const RunRecord& record;
  const std::map<size_t, TaskResult>& finished;  ///< by the task's place in the suite
  const Json& engine;                            ///< EngineInfo as JSON
  const Json& isolation;                         ///< how the model's code is isolated
  std::string fingerprint;
  std::map<std::string, double> device_shares;  ///< share of the run in which each device computed
  double seconds = 0;                           ///< since the run was begun or resumed
  const std::vector<std::string>& problems;
  WorkDone earlier;  ///< the part of the record's work that was done before the run was resumed
  std::map<std::string, Json> generation = {};  ///< by task: the generation settings in force
};

/// results.json in the harness's shape, with evald's own facts under "evald". Unfinished tasks are
/// left out and named under evald.incomplete.
Json BuildRunResults(const RunResultsInput& input);

/// "exact_match 0.4150" for a task's entry in `results`.
std::string Headline(const TaskDefinition& task, const Json& entry);

/// {"metric", "filter", "value", "stderr"} of the same. `value` is a
/// number, or "nan", "inf" or "-inf". `stderr` is null if there is none. Null for an entry without
/// numbers.
Json HeadlineScore(const Json& entry);

/// Shows how a run ended. With `json`, prints the results as one JSON document on standard output,
/// otherwise a table. Problems go to standard error. `verdict` is the document of verdict.json, or
/// null without gates; the JSON document contains it and its exit status. An empty
/// `outcome.directory` is not shown.
void PrintOutcome(const RunOutcome& outcome, const EvalConfig& config, bool json,
                  const Json& verdict = Json());

}  // namespace evald

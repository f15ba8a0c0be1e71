#pragma once

#include <map>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/run/preparation.h"
#include "orchestrator/run/run_directory.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/run/task_finisher.h"
#include "orchestrator/state/run_store.h"

namespace evald {

/// Requests that were answered, and their tokens.
struct WorkDone {
  int64_t requests = 0, tokens_in = 0, tokens_out = 0;
};

/// Of all committed generations.
WorkDone WorkOf(const RunRecord& record);

/// All that the results of a run are made of.
struct RunResultsInput {
  const EvalConfig& config;
  const RunDirectory& directory;
  const Suite& suite;
  const RunRecord& record;
  const std::map<size_t, TaskResult>& finished;  ///< by the task's place in the suite
  const Json& engine;                            ///< EngineInfo as JSON
  const Json& isolation;                         ///< what isolates the model's code
  std::string fingerprint;
  std::map<std::string, double> device_shares;  ///< share of the run in which each device computed
  double seconds = 0;                           ///< since the run was begun, or resumed
  const std::vector<std::string>& problems;
  WorkDone earlier;  ///< of the record's work, what was done before the run was resumed
  std::map<std::string, Json> generation = {};  ///< by task: the generation settings in force
};

/// results.json in the harness's shape, with evald's own facts under "evald". Tasks that are not
/// finished are left out, and named under evald.incomplete.
Json BuildRunResults(const RunResultsInput& input);

/// "exact_match 0.4150" for a task's entry in `results`.
std::string Headline(const TaskDefinition& task, const Json& entry);

/// {"metric", "filter", "value", "stderr"} of the same; `stderr` is null where there is none. Null
/// for an entry without numbers.
Json HeadlineScore(const Json& entry);

/// Shows how a run ended: with `json` results as one JSON document on standard output, else a table
/// there. What went wrong goes to standard error. `verdict` is verdict.json's document, null
/// without gates; the document has it as a member, and its exit status. An empty
/// `outcome.directory` is not shown.
void PrintOutcome(const RunOutcome& outcome, const EvalConfig& config, bool json,
                  const Json& verdict = Json());

}  // namespace evald

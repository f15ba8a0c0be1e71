#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/report/run_results.h"
#include "orchestrator/run/generation_plan.h"
#include "orchestrator/run/preparation.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/run_machine.h"
#include "orchestrator/schedule/prior.h"

namespace evald {

/// A staged checkpoint as planning needs it. The staged copy is there until the plan is made.
struct PlanCheckpoint {
  std::filesystem::path folder;
  double bytes = 0;
};

/// All that a run is planned from.
struct PlanInput {
  EvalConfig config;
  std::shared_ptr<const Suite> suite;
  std::vector<MachineTask> tasks;  ///< the suite's
  Json engine;                     ///< EngineInfo as JSON
  std::optional<PlanCheckpoint> checkpoint;
  Recovery recovery;
  std::vector<TaskCost> known;  ///< costs that earlier runs measured
  int devices = 1;
};

/// A planned run: what an earlier life left is taken over, the rest may be leased.
struct RunPlan {
  RunMachine machine;
  RunRecord record;
  CostPlace place;
  GenerationPlan generation;
  std::vector<Prior> priors;  ///< of the suite's tasks
  WorkDone earlier;           ///< what lives before this one did
  double backlog_bytes = 0;   ///< of generations that wait for scoring
  int64_t generated = 0;      ///< documents
};

/// The state of a run of this configuration before it is planned.
RunMachine MakeMachine(const EvalConfig& config);

/// Plans a run. Reads the staged checkpoint's config.json, generation_config.json and
/// tokenizer.json; takes time that grows with the run's tasks and documents, so not for the loop.
/// Throws Error(kInput) when the tokenizer is not the one that the suite's tokens were made with,
/// and for a broken generation_config.json.
RunPlan PlanRun(PlanInput input);

/// Bytes of the lines of these documents' generations, as far as a file's length says.
double GeneratedBytes(const RunRecord& record, const std::string& task,
                      const std::vector<int64_t>& documents);

}  // namespace evald

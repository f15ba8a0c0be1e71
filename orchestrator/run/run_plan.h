#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/prepare/preparation.h"
#include "orchestrator/run/generation_plan.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/run_results.h"
#include "orchestrator/run_machine/run_machine.h"
#include "orchestrator/schedule/prior.h"

namespace evald {

/// A staged checkpoint as planning needs it. The staged copy exists until the plan is made.
struct PlanCheckpoint {
  std::filesystem::path folder;
  double bytes = 0;
};

/// The input for planning a run.
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

/// A planned run: the files that earlier processes wrote are taken over, the rest may be leased.
struct RunPlan {
  RunMachine machine;
  RunRecord record;
  CostPlace place;
  GenerationPlan generation;
  std::vector<Prior> priors;  ///< of the suite's tasks
  WorkDone earlier;           ///< work of earlier processes
  double backlog_bytes = 0;   ///< of generations that wait for scoring
  int64_t generated = 0;      ///< documents
};

/// The state of a run of this configuration before it is planned.
RunMachine MakeMachine(const EvalConfig& config);

/// Plans a run. Reads the staged checkpoint's config.json, generation_config.json and
/// tokenizer.json. Its time grows with the run's tasks and documents, so do not call it on the
/// loop. Throws Error(kInput) for a broken generation_config.json, and if the tokenizer is not the
/// one that made the suite's tokens.
RunPlan PlanRun(PlanInput input);

/// Bytes of the lines of these documents' generations, estimated from file lengths.
double GeneratedBytes(const RunRecord& record, const std::string& task,
                      const std::vector<int64_t>& documents);

}  // namespace evald

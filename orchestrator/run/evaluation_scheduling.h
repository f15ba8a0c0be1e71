#pragma once

#include "orchestrator/run/evaluation.h"
#include "orchestrator/run/process_numbers.h"
#include "orchestrator/run/run_costs.h"
#include "orchestrator/run/run_ending.h"
#include "orchestrator/run/run_plan.h"
#include "orchestrator/run_machine/run_machine.h"
#include "orchestrator/schedule/prior.h"

namespace evald {

/// The parts of an Evaluation whose types come from the scheduling. Internal to Evaluation.
struct Evaluation::Scheduling {
  RunMachine machine;
  ProcessNumbers processes;
  RunCosts costs;
  CostPlace place;
};

}  // namespace evald

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/simulate/simulation.h"

namespace evald {

/// What is simulated: a workload on a cluster, under some policies.
struct Scenario {
  Workload workload;
  SimCluster cluster;
  std::vector<std::string> policies;
  int draws = 1;                ///< of lengths and, for coupled executors, of the order of the datasets
  uint64_t seed = 1;
  double prior_error = 1;       ///< priors are off by up to this factor, log-uniformly, task by task
  bool no_priors = false;       ///< nothing is known but prompts and limits
  bool shuffle = true;          ///< datasets in a drawn order; else the file's
  double trial_failure_rate = 0;
  double lose_node_at = 0;      ///< share of the bound at which the last node is lost; 0: never
  bool ablate = false;          ///< evald's policy also with each decoupling switched off
  bool keep_spans = false;      ///< of the first draw
};

/// One policy, or an ablation of evald's.
struct PolicyOutcome {
  std::string name;
  std::vector<SimResult> draws;
};

struct ScenarioResult {
  std::vector<double> bounds_s;  ///< by draw
  std::vector<PolicyOutcome> policies;
};

/// Runs all of it, draw by draw; draws share nothing, and equal seeds give equal results. `progress` is
/// told how many simulations of how many are done.
ScenarioResult RunScenario(const Scenario& scenario, const std::function<void(int done, int all)>& progress);

}  // namespace evald

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/simulate/bound.h"
#include "orchestrator/simulate/simulation.h"

namespace evald {

/// What is simulated: a workload on a cluster, under some policies.
struct Scenario {
  Workload workload;
  SimCluster cluster;
  std::vector<std::string> policies;
  int draws = 1;  ///< of lengths and, with `shuffle`, of the order of the datasets
  uint64_t seed = 1;
  double prior_error = 1;  ///< priors are off by up to this factor, log-uniformly, task by task
  bool no_priors = false;  ///< nothing is known but prompts and limits
  bool shuffle = true;     ///< datasets in a drawn order; else the file's
  double trial_failure_rate = 0;
  double lose_node_at = 0;  ///< share of the bound at which the last node is lost; 0: never
  double slow_device = 1;   ///< the first device takes so many times as long as it says
  double slow_node = 1;     ///< so do all devices of the second node, or of the only one
  bool ablate = false;      ///< evald's policy also with each decoupling switched off
  int keep_spans = 0;       ///< of so many draws, from the first
  int threads = 1;          ///< draws that are simulated at once

  bool has_faults() const {
    return trial_failure_rate > 0 || lose_node_at > 0 || slow_device > 1 || slow_node > 1;
  }
};

/// One policy, or an ablation of evald's.
struct PolicyOutcome {
  std::string name;
  Decouplings decouplings;
  bool reference = false;  ///< was not asked for: coupled, which the others are compared with
  std::vector<SimResult>
      draws;  ///< task_scored_s: in the order of the workload, whatever the draw's
};

struct ScenarioResult {
  std::vector<SimBound> bounds;  ///< by draw
  std::vector<PolicyOutcome> policies;
};

/// Runs all of it; draws share nothing, and equal seeds give equal results whatever the number of
/// threads. `progress` is told how many simulations of how many are done, by one thread at a time.
/// Throws Error(kUsage) for a policy that is not known.
ScenarioResult RunScenario(const Scenario& scenario,
                           const std::function<void(int done, int all)>& progress);

}  // namespace evald

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/simulate/scenario.h"

namespace evald {

/// A workload that comes with the program, and what it is run on unless the command line says
/// otherwise.
struct SimPreset {
  std::string name;
  std::string summary;
  std::string cluster;
  int nodes = 1;
  int checkpoints = 1;    ///< more: of one training run, each evaluated when it is there
  double every_s = 1800;  ///< between two of them
  bool job_day = false;   ///< a day of a cluster's jobs (job_day.h); else the workload below
};

const std::vector<SimPreset>& SimPresets();
/// Throws Error(kUsage) for a name that is not among them.
const SimPreset& FindPreset(const std::string& name);

/// The YAML of the presets' workload, with the comments that give each figure's source.
std::string_view PresetWorkloadText();

/// Names of the clusters that come with the program.
const std::vector<std::string>& SimClusterNames();
std::string_view ClusterText(const std::string& name);

/// The cluster of this name that comes with the program, or the one in the file of this name.
/// Throws Error(kUsage).
SimCluster FindCluster(const std::string& name_or_file);

/// What "Characterization of Large Language Model Development in the Datacenter" (NSDI 2024)
/// publishes for the makespan of 63 datasets under its own scheduler against coupled trials: 1.3 on
/// one node, 1.8 on four. Nothing for any other scenario or policy.
std::optional<double> PublishedSpeedup(const Scenario& scenario, const std::string& policy);

}  // namespace evald

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/simulate/scenario.h"

namespace evald {

/// A workload that comes with the program, and the cluster it is run on unless another is named.
struct SimPreset {
  std::string name;
  std::string summary;
  std::string cluster;
};

const std::vector<SimPreset>& SimPresets();
/// Throws Error(kUsage) for a name that is not among them.
const SimPreset& FindPreset(const std::string& name);

/// The YAML of a preset's workload, with the comments that give each figure's source.
std::string_view PresetWorkloadText(const std::string& preset);

/// Names of the clusters that come with the program.
const std::vector<std::string>& SimClusterNames();
std::string_view ClusterText(const std::string& name);

/// The cluster of this name that comes with the program, or the one in the file of this name. Throws
/// Error(kUsage).
SimCluster FindCluster(const std::string& name_or_file);

/// What "Characterization of Large Language Model Development in the Datacenter" (NSDI 2024) publishes
/// for the makespan of 63 datasets under its own scheduler against coupled trials: 1.3 on one node, 1.8
/// on four. Nothing for any other scenario or policy.
std::optional<double> PublishedSpeedup(const Scenario& scenario, const std::string& policy);

}  // namespace evald

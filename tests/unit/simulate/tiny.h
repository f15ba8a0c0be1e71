#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "orchestrator/simulate/simulation.h"

namespace evald {

/// A cluster small enough to follow by hand. 10 bytes of weights take 10 s from storage and 5 s
/// over PCIe. An engine starts in 5 s, a dataset is prepared in 3 s, and a lease takes half a
/// second.
inline constexpr double kTinyWeights = 10;

inline SimCluster TinyCluster(int nodes = 1, int devices_per_node = 1) {
  SimCluster cluster;
  cluster.nodes = nodes;
  cluster.devices_per_node = devices_per_node;
  cluster.storage_bytes_per_s = 1;
  cluster.pcie_bytes_per_s = 2;
  cluster.start_s = 5;
  cluster.prepare_s = 3;
  cluster.lease_s = 0.5;
  return cluster;
}

/// A dataset whose documents take the given seconds of a place.
inline SimTask TinyTask(int dataset, std::vector<float> place_s, double score_s = 0) {
  SimTask task;
  task.name = "task " + std::to_string(dataset);
  task.dataset = dataset;
  task.documents = static_cast<int64_t>(place_s.size());
  task.place_s = std::move(place_s);
  task.score_s = score_s;
  task.size = 1;
  return task;
}

inline SimResult Simulate(const SimCluster& cluster, const std::vector<SimTask>& tasks,
                          Simulation::Options options) {
  std::vector<TaskEstimate> estimates;
  for (const SimTask& task : tasks) estimates.push_back(TrueEstimate(task, cluster.places));
  return Simulation(cluster, kTinyWeights, tasks, estimates, std::move(options)).Run();
}

inline SimResult Simulate(const SimCluster& cluster, const std::vector<SimTask>& tasks,
                          const std::string& policy) {
  Simulation::Options options;
  options.policy = policy;
  return Simulate(cluster, tasks, options);
}

}  // namespace evald

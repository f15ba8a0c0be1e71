#include "orchestrator/simulate/bound.h"

#include <algorithm>
#include <limits>

namespace evald {

SimWork WorkOf(const std::vector<SimTask>& tasks, int places) {
  SimWork work;
  work.first_generation_s = std::numeric_limits<double>::infinity();
  for (const SimTask& task : tasks) {
    const TaskEstimate truth = TrueEstimate(task, places);
    const auto documents = static_cast<double>(truth.documents);
    work.device_s += truth.device_s * documents;
    work.longest_request_s = std::max(work.longest_request_s, truth.request_s);
    work.score_s += truth.score_s * documents;
    if (truth.score_s <= 0) continue;
    for (const float place_s : task.place_s) {
      work.first_generation_s = std::min(work.first_generation_s, static_cast<double>(place_s));
    }
  }
  return work;
}

// The tree begins when the first node has the checkpoint. Level 1 has `fan_out` nodes, and each
// further level so many times as many.
std::vector<double> StagedTimes(const SimCluster& cluster, double weights_bytes) {
  const double first_s = weights_bytes / cluster.storage_bytes_per_s;
  std::vector<double> times;
  if (cluster.staging != SimStaging::kTree) {
    const bool in_turn = cluster.staging == SimStaging::kLink;
    for (int node = 0; node < cluster.nodes; ++node)
      times.push_back(in_turn ? (node + 1) * first_s : first_s);
    return times;
  }
  const double copy_s = weights_bytes / cluster.node_bytes_per_s;
  times.push_back(first_s);
  double of_level = 1;
  for (int level = 1; static_cast<int>(times.size()) < cluster.nodes; ++level) {
    of_level *= cluster.fan_out;
    const double more = std::min(of_level, static_cast<double>(cluster.nodes) - times.size());
    times.insert(times.end(), static_cast<size_t>(more), first_s + copy_s + level * cluster.hop_s);
  }
  return times;
}

double WorkEnd(const std::vector<double>& times, const std::vector<double>& devices,
               double work_s) {
  double count = 0, late_s = 0, end = 0;  // of the devices that have begun by the end
  for (size_t i = 0; i < times.size(); ++i) {
    if (i > 0 && end <= times[i]) break;
    count += devices[i];
    late_s += devices[i] * times[i];
    end = (work_s + late_s) / count;
  }
  return end;
}

double SimBound::total_s() const {
  return stage_s + std::max({work_s, longest_request_s, scoring_s});
}

SimBound BoundOf(const SimWork& work, const SimCluster& cluster, double weights_bytes) {
  std::vector<double> times = StagedTimes(cluster, weights_bytes);
  const double first_s = times[0];
  for (double& time : times) time -= first_s;
  const std::vector<double> devices(times.size(), cluster.devices_per_node);
  SimBound bound{first_s, WorkEnd(times, devices, work.device_s), work.longest_request_s, 0};
  if (work.score_s > 0)
    bound.scoring_s = work.first_generation_s + work.score_s / cluster.score_slots();
  return bound;
}

}  // namespace evald

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

double SimBound::total_s() const {
  return stage_s + std::max({work_s, longest_request_s, scoring_s});
}

SimBound BoundOf(const SimWork& work, const SimCluster& cluster, double stage_s) {
  SimBound bound{stage_s, work.device_s / cluster.devices(), work.longest_request_s, 0};
  if (work.score_s > 0)
    bound.scoring_s = work.first_generation_s + work.score_s / cluster.score_slots();
  return bound;
}

}  // namespace evald

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/schedule/estimate.h"
#include "orchestrator/simulate/cluster.h"
#include "orchestrator/simulate/workload.h"

namespace evald {

/// A dataset on a cluster's devices, with what each of its documents really costs.
struct SimTask {
  std::string name;
  int dataset = 0;
  int64_t documents = 0;
  /// Seconds that each document takes one of a device's places. A device with all places taken does
  /// `places` of these a second.
  std::vector<float> place_s;
  double prefix_s = 0;  ///< device seconds of a shared prefix, included above once for each group
  int64_t prefix_groups = 0;
  double score_s = 0;  ///< of a document
  bool slow_scoring = false;
  double size = 0;  ///< rows, those that generate counting twenty times

  bool begins_group(int64_t document) const;
};

/// Documents of a workload with lengths drawn by `seed`.
std::vector<SimTask> DrawTasks(const Workload& workload, const SimCluster& cluster, uint64_t seed);

/// Seconds of a decoding step of a device with all places taken, at `context` tokens in each: the
/// larger of reading weights and caches, and of computing (the roofline).
double StepSeconds(const SimModel& model, const SimCluster& cluster, double context);

/// The estimate of a task that a perfect prior would give.
TaskEstimate TrueEstimate(const SimTask& task, int places);
/// The estimates without any prior. Of the file, only mean prompts and limits are used. Generated
/// lengths and scoring costs are guessed by one rule for all tasks (docs/scheduling.md).
std::vector<TaskEstimate> GuessedEstimates(const Workload& workload, const SimCluster& cluster);

}  // namespace evald

#pragma once

#include <vector>

#include "orchestrator/simulate/cluster.h"
#include "orchestrator/simulate/drawn_tasks.h"
#include "orchestrator/simulate/sim_result.h"

namespace evald {

/// A workload's total work, whichever devices do it, in seconds.
struct SimWork {
  double device_s = 0;  ///< of a device, for all documents, each once
  double longest_request_s = 0;
  std::vector<LongDocuments> long_documents;  ///< in descending order of their seconds
  double first_generation_s =
      0;               ///< shortest request of a task that is scored; infinity when none is
  double score_s = 0;  ///< of a slot, for all documents
};

SimWork WorkOf(const std::vector<SimTask>& tasks, int places);

/// The earliest times at which the nodes can have the checkpoint, in ascending order; seconds.
std::vector<double> StagedTimes(const SimCluster& cluster, double weights_bytes);

/// The time until `work_s` device seconds are done at the earliest if so many devices (of
/// `devices`, in any unit of a device) begin at each of the `times`, which ascend.
double WorkEnd(const std::vector<double>& times, const std::vector<double>& devices, double work_s);

/// The time until all of `documents` can have ended if so many `places` of each node begin at each
/// of the `times`, which ascend. A little less than that.
double PlacesEnd(const std::vector<double>& times, int places,
                 const std::vector<LongDocuments>& documents);

/// The time until the last document of one task ends, if its documents begin in their order, each
/// in the place that is free first, and nothing else is computed. So many `places` of each node
/// begin at each of the `times`, which ascend.
double InOrderEnd(const std::vector<double>& times, int places, const std::vector<float>& place_s);

/// The time that no schedule can beat, in seconds: staging, and then the largest of the other
/// members.
struct SimBound {
  double stage_s = 0;  ///< until the first node can have the checkpoint
  double work_s = 0;   ///< from then on: device work on the devices of the nodes that can have it
  double longest_request_s = 0;
  double long_requests_s = 0;  ///< all long requests, one after another in each place
  double scoring_s = 0;        ///< first generation, then CPU work over the number of slots
  /// The longest InOrderEnd of a task. Not in total_s: it bounds only schedules that begin the
  /// documents of a task in their order, since nobody knows beforehand which of them are long.
  double in_order_s = 0;
  double total_s() const;
  /// The same for schedules that do not know which documents are long.
  double unknowing_s() const;
};

/// Without in_order_s.
SimBound BoundOf(const SimWork& work, const SimCluster& cluster, double weights_bytes);
SimBound BoundOf(const std::vector<SimTask>& tasks, const SimCluster& cluster,
                 double weights_bytes);

}  // namespace evald

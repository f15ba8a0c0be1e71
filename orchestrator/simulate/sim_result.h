#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/simulate/cluster.h"

namespace evald {

/// What goes wrong in a simulation.
struct SimFaults {
  double trial_failure_rate = 0;         ///< share of trials that fail somewhere on their way
  std::optional<double> node_lost_at_s;  ///< the last node and all on it are gone from then on
  double slow_device = 1;  ///< the first device takes so many times as long as it says
  double slow_node = 1;    ///< so do all of the second node (the only one, if there is one)
};

/// A stretch of a device's time in the simulation; seconds.
struct SimSpan {
  int device = 0;
  const char* name = "";  ///< start, load, prepare, generate, score
  double begin = 0, end = 0;
  std::string label;  ///< of a trial: its tasks
};

/// Documents that each take a place for at least this long.
struct LongDocuments {
  double seconds = 0;
  int64_t count = 0;
};

struct SimResult {
  double makespan_s = 0;     ///< until the last document is scored
  double weights_in_s = 0;   ///< when the last device had them for the first time
  double device_work_s = 0;  ///< device seconds of all documents, each once
  double longest_request_s = 0;
  std::vector<LongDocuments> long_documents;
  double first_generation_s =
      0;                    ///< shortest request of a task that is scored; infinity when none is
  double score_work_s = 0;  ///< CPU seconds
  double stage_s = 0;       ///< of the first node, at the storage's limit
  double weights_bytes = 0;
  int nodes_staged = 0;   ///< nodes that got the checkpoint
  double idle_share = 0;  ///< device time without a request, of that after weights-in
  double generate_share =
      0;  ///< of the time of devices that were not lost: with a request under way
  std::map<std::string, double>
      lost_shares;  ///< of the same: start, load (and waiting for it), prepare, score
  std::vector<double> task_scored_s;  ///< when each task's score was known
  int64_t trials = 0;
  int64_t trials_failed = 0;
  int64_t events = 0;            ///< that were handled
  int64_t documents_again = 0;   ///< that were computed more than once
  int64_t trials_backed_up = 0;  ///< of which a backup was given to an idle device
  int64_t documents_scored = 0;
  double estimate_error =
      0;  ///< of the device seconds expected, as a factor, mean over tasks by work
  double left_bound_s = 0;     ///< with faults: none can be faster than what they have left to do
  std::vector<SimSpan> spans;  ///< when asked for

  /// No schedule can be faster (bound.h).
  double bound_s(const SimCluster& cluster) const;
};

}  // namespace evald

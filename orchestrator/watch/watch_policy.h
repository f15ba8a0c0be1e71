#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/watch/checkpoint_scan.h"

namespace evald {

/// The choice of a training run's checkpoints to evaluate.
enum class WatchWhich {
  kAll,     ///< each one, in order
  kNewest,  ///< the newest one each time the last is done; the others are passed over
  kEvery,   ///< every n-th that arrives: the n-th, the 2n-th, ...
};

/// A watch's memory. It decides once about each checkpoint.
struct WatchMemory {
  /// "<name> <identity>" of checkpoints submitted or passed over
  std::set<std::string> decided;
  int64_t arrived = 0;               ///< number of checkpoints that arrived
  std::vector<std::string> waiting;  ///< submitted runs that are not known to be over
};
std::string MemoryKey(const FoundCheckpoint& checkpoint);

struct WatchDecision {
  std::vector<FoundCheckpoint> submit;
  std::vector<FoundCheckpoint> pass_over;
};

/// Decides about the checkpoints that were found. `waiting` is the number of the watch's runs that
/// are not over. A pure function; the caller adds to the memory what it carried out.
WatchDecision DecideWatch(WatchWhich which, int every, const std::vector<FoundCheckpoint>& found,
                          const WatchMemory& memory, size_t waiting);

}  // namespace evald

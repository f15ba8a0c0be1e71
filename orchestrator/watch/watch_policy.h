#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/watch/checkpoint_scan.h"

namespace evald {

/// Which checkpoints of a training run are evaluated.
enum class WatchWhich {
  kAll,     ///< each one, in order
  kNewest,  ///< the newest one there is whenever the last one is done; the rest is passed over
  kEvery,   ///< the n-th, 2n-th, ... that arrives
};

/// What a watch remembers: it decides about each checkpoint once.
struct WatchMemory {
  std::set<std::string> decided;     ///< "<name> <identity>" of those submitted or passed over
  int64_t arrived = 0;               ///< how many
  std::vector<std::string> waiting;  ///< runs submitted and not known to be over
};
std::string MemoryKey(const FoundCheckpoint& checkpoint);

struct WatchDecision {
  std::vector<FoundCheckpoint> submit;
  std::vector<FoundCheckpoint> pass_over;
};

/// What to do with what was found. `waiting` is how many of the watch's runs are not over. A pure
/// function; the caller adds what it carried out to the memory.
WatchDecision DecideWatch(WatchWhich which, int every, const std::vector<FoundCheckpoint>& found,
                          const WatchMemory& memory, size_t waiting);

}  // namespace evald

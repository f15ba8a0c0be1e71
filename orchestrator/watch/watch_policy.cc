#include "orchestrator/watch/watch_policy.h"

namespace evald {

std::string MemoryKey(const FoundCheckpoint& checkpoint) {
  return checkpoint.name + " " + checkpoint.identity;
}

WatchDecision DecideWatch(WatchWhich which, int every, const std::vector<FoundCheckpoint>& found,
                          const WatchMemory& memory, size_t waiting) {
  WatchDecision decision;
  std::vector<FoundCheckpoint> fresh;
  for (const FoundCheckpoint& checkpoint : found) {
    if (memory.decided.count(MemoryKey(checkpoint)) == 0) fresh.push_back(checkpoint);
  }
  switch (which) {
    case WatchWhich::kAll:
      decision.submit = std::move(fresh);
      break;
    case WatchWhich::kNewest:
      if (fresh.empty() || waiting > 0) break;
      decision.submit = {fresh.back()};
      fresh.pop_back();
      decision.pass_over = std::move(fresh);
      break;
    case WatchWhich::kEvery:
      for (size_t i = 0; i < fresh.size(); ++i) {
        const bool nth = (memory.arrived + static_cast<int64_t>(i) + 1) % every == 0;
        (nth ? decision.submit : decision.pass_over).push_back(fresh[i]);
      }
      break;
  }
  return decision;
}

}  // namespace evald

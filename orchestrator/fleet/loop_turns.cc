#include "orchestrator/fleet/loop_turns.h"

#include <algorithm>

namespace evald {

void LoopTurnCounter::Add(int64_t now_us, double seconds, double processor_s) {
  const auto bucket =
      std::lower_bound(LoopTurns::kBounds.begin(), LoopTurns::kBounds.end(), seconds);
  ++turns_.counts[static_cast<size_t>(bucket - LoopTurns::kBounds.begin())];
  ++turns_.count;
  turns_.sum_s += seconds;
  const int64_t number = now_us / kStretchMicros;
  Stretch& stretch = stretches_[static_cast<size_t>(number) % kStretches];
  if (stretch.number != number) stretch = {number, 0, 0};
  stretch.longest_s = std::max(stretch.longest_s, seconds);
  stretch.longest_processor_s = std::max(stretch.longest_processor_s, processor_s);
}

LoopTurns LoopTurnCounter::Look(int64_t now_us) const {
  LoopTurns turns = turns_;
  const int64_t oldest = now_us / kStretchMicros - static_cast<int64_t>(kStretches) + 1;
  for (const Stretch& stretch : stretches_) {
    if (stretch.number < oldest) continue;
    turns.longest_s = std::max(turns.longest_s, stretch.longest_s);
    turns.longest_processor_s = std::max(turns.longest_processor_s, stretch.longest_processor_s);
  }
  return turns;
}

}  // namespace evald

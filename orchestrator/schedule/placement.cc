#include "orchestrator/schedule/placement.h"

namespace evald {

bool WorthStaging(const StagingCase& at) {
  if (at.devices_beside <= 0) return true;
  if (!at.open_s) return false;
  return *at.open_s / at.devices_beside > at.stage_s + kWorthALoadSeconds;
}

void CopyPace::Ended(int under_way, double bytes, double seconds) {
  if (bytes <= 0 || seconds <= 0) return;
  bytes_per_s_ = bytes / seconds;
  if (wait_ > 0) --wait_;
  if (under_way < at_once_ || wait_ > 0) return;
  const bool longer = at_once_ > fast_ && fast_ > 0 && bytes_per_s_ * kLonger < fast_bytes_per_s_;
  if (longer) {
    at_once_ = fast_;
    wait_ = next_wait_ + under_way - 1;  // the others of this turn end first
    next_wait_ *= 2;
    return;
  }
  fast_ = at_once_;
  fast_bytes_per_s_ = bytes_per_s_;
  at_once_ *= 2;
}

}  // namespace evald

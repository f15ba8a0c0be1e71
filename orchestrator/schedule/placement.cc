#include "orchestrator/schedule/placement.h"

namespace evald {

bool WorthStaging(const StagingCase& at) {
  if (at.devices_beside <= 0) return true;
  if (!at.open_s) return false;
  return *at.open_s / at.devices_beside > at.stage_s + kWorthALoadSeconds;
}

}  // namespace evald

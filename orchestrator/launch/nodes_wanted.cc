#include "orchestrator/launch/nodes_wanted.h"

#include <algorithm>
#include <cmath>

namespace evald {

int NodesWanted(const NodeDemand& demand, const NodeCosts& costs) {
  constexpr double kNodesMax = 1e6;
  const bool nobody = demand.devices == 0 && (demand.open_s > 0 || demand.unknown_runs > 0);
  const double left = demand.open_s - costs.start_s * demand.devices;
  const double devices = left / std::max(1.0, costs.useful_s) - demand.devices;
  const double nodes = std::floor(devices / std::max(1, costs.devices));
  return std::max(nobody ? 1 : 0, static_cast<int>(std::clamp(nodes, 0.0, kNodesMax)));
}

}  // namespace evald

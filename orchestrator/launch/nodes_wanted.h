#pragma once

namespace evald {

/// The work that is open, and the devices that do it.
struct NodeDemand {
  double open_s = 0;  ///< device seconds that the open work of all runs is expected to take
  /// Runs that wait or are being prepared, whose work is not in open_s
  int unknown_runs = 0;
  int devices = 0;  ///< that are there, of all hosts
};

/// What another node costs and brings.
struct NodeCosts {
  int devices = 1;       ///< of a node
  double start_s = 60;   ///< from the submission of a job until its devices are there
  double useful_s = 60;  ///< a node must have work for at least so long to be worth its start
};

/// The number of nodes to have in addition to the devices that are there. A node counts if it would
/// still have work for `useful_s` once it has come: with m nodes more, the work that is left after
/// `start_s` lasts left / (devices + m * node devices). At least 1 if there is work and no device.
int NodesWanted(const NodeDemand& demand, const NodeCosts& costs);

}  // namespace evald

#pragma once

#include <string>
#include <vector>

#include "orchestrator/cli/client.h"

namespace evald::cli {

/// One line of `evald doctor`.
struct Check {
  std::string what;
  bool fine = false;
  std::string detail;  ///< the finding, and the remedy if it is not fine
};

/// Checks a service and its agents. A service that was not named and is not there is no fault. It
/// is a fault if it cannot be reached over TLS, or does not know the token.
std::vector<Check> CheckService(const ClientFlags& flags);

/// The number of agents' connections that the service turned away with this status, from its
/// /metrics.
double AgentsTurnedAway(const std::string& metrics, int status);

}  // namespace evald::cli

#pragma once

#include <string>
#include <vector>

#include "orchestrator/cli/client.h"

namespace evald::cli {

/// One line of `evald doctor`.
struct Check {
  std::string what;
  bool fine = false;
  std::string detail;  ///< what was found, and the remedy where it is not fine
};

/// What a service says of itself and its agents: one that is not named and not there is no fault.
/// That it cannot be reached over TLS, or does not know the token, is one.
std::vector<Check> CheckService(const ClientFlags& flags);

/// How many connections of agents the service turned away with this status, by its /metrics.
double AgentsTurnedAway(const std::string& metrics, int status);

}  // namespace evald::cli

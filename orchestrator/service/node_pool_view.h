#pragma once

#include <string>

#include "evald/json.h"
#include "orchestrator/launch/launch_machine.h"

namespace evald {

struct NodePoolOptions;

/// A Launcher resource of docs/openapi.json: the bounds, each job that is not over, what goes
/// wrong.
Json ShowNodes(const NodePoolOptions& options, const LaunchMachine& machine, double now);
/// What the launcher's waiting jobs wait for: "2 nodes of slurm (waiting in its queue: Resources)".
/// "" without such jobs and without a problem.
std::string ShowWaiting(const NodePoolOptions& options, const LaunchMachine& machine);

}  // namespace evald

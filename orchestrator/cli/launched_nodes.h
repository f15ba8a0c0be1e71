#pragma once

#include <memory>
#include <optional>

#include "orchestrator/config/eval_config.h"
#include "orchestrator/launch/allocation.h"
#include "orchestrator/service/run_nodes.h"

namespace evald::cli {

/// `config.launcher` with arguments that give agents what an eval.yaml says of workers and metric
/// processes, unless the launcher has its own.
LauncherConfig WithAgentArguments(const EvalConfig& config);

/// Nodes that a launcher is asked for: a job for each, so that the first that comes begins.
/// `config.launcher` is complete (CompleteLauncher).
std::unique_ptr<RunNodes> NodesOfLauncher(const EvalConfig& config);

/// The nodes of the allocation in which this process runs, by one srun.
std::unique_ptr<RunNodes> NodesOfAllocation(const EvalConfig& config, const Allocation& allocation,
                                            const std::filesystem::path& evald);

}  // namespace evald::cli

#pragma once

#include <filesystem>

#include "orchestrator/fleet/agent_files.h"

namespace evald::test {

/// Files below `folder` that an agent may have and give, granted to the agent of
/// docs/openapi.json's examples under the names there: a prepared task, a checkpoint, a generations
/// file.
void GiveWork(const std::filesystem::path& folder, AgentFiles* files);

}  // namespace evald::test

#pragma once

#include <filesystem>

#include "orchestrator/fleet/agent_files.h"

namespace evald::test {

/// Makes files below `folder` that an agent may fetch and give: a prepared task, a checkpoint, a
/// generations file. They are granted to the agent of docs/openapi.json's examples under the names
/// there.
void GiveWork(const std::filesystem::path& folder, AgentFiles* files);

}  // namespace evald::test

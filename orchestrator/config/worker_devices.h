#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// Replaces the requested devices by the chosen ones, and sets the numbers of workers and of
/// threads for each. Asks evald-worker-cuda in `binaries` if that matters. A second call changes
/// nothing. Throws like ChooseDevices.
void ChooseWorkers(WorkersConfig* workers, const std::string& engine,
                   const std::filesystem::path& binaries);

}  // namespace evald

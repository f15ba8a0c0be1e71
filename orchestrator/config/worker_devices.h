#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// Puts the devices that were chosen in place of those that were asked for, and says how many
/// workers there are and how many threads each has. Asks evald-worker-cuda in `binaries` where that
/// matters; a second call changes nothing. Throws as ChooseDevices does.
void ChooseWorkers(WorkersConfig* workers, const std::string& engine,
                   const std::filesystem::path& binaries);

}  // namespace evald

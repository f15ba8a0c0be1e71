#pragma once

#include <filesystem>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// Asks the worker program in the folder `binaries` whether the engine takes its settings; it loads
/// nothing for that. Throws Error(kUsage) "file:line: key 'engine.threds': unknown key; ..." when
/// it does not, and Error(kInfrastructure) when the worker cannot be asked.
void CheckEngineSettings(const EvalConfig& config, const std::filesystem::path& binaries);

}  // namespace evald

#pragma once

#include <filesystem>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// Asks the worker program in the folder `binaries` whether the engine takes its settings. The
/// worker loads nothing for that. With `programs_here`, the programs that the engine starts must be
/// on this host, too. Throws Error(kUsage) "file:line: key 'engine.threds': unknown
/// key; ..." if it does not take them, and Error(kInfrastructure) if the worker cannot be asked.
void CheckEngineSettings(const EvalConfig& config, const std::filesystem::path& binaries);

}  // namespace evald

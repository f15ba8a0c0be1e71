#pragma once

#include <filesystem>

#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/prepare/input.h"

namespace evald {

/// Refuses a configuration that could only fail on this host, before anything is made or started:
/// the engine's settings, keys of judges, tasks and their data, the checkpoint, and gates. Throws
/// the one Error, or a Problems with all of them. `work` is kCheck or kDescribe. Returns what
/// CheckInput or DescribeInput (orchestrator/prepare/preparation.h) found. `binaries` is the folder
/// of evald's programs.
Json CheckConfig(const EvalConfig& config, const std::filesystem::path& binaries,
                 PreparationInput::Work work);

}  // namespace evald

#pragma once

#include <filesystem>

#include "datasets/task_set.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {

/// Reads an entry of `tasks` that has the key `command` (docs/eval-yaml.md, "Commands"). A program
/// named by a relative path, and {eval_dir}, are resolved against the folder of `file`. Throws
/// Error(kUsage) "file:line: ...".
TaskRequest ReadCommandTask(YamlSection section, const std::filesystem::path& file);

/// Throws Error(kUsage) if the engine has no model that a program could ask.
void CheckCommands(const EvalConfig& config);

}  // namespace evald

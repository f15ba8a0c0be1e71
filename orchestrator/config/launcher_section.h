#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/config/launcher_config.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {

/// Reads `launchers`, a list of {slurm: {...}} and {command: {...}}. Relative paths start from the
/// folder of `file`.
std::vector<LauncherConfig> ReadLaunchers(YamlSection& top, const std::filesystem::path& file);
/// Reads `launcher` of an eval.yaml: the same entry, but with a number of nodes, all of which are
/// asked for at once.
std::optional<LauncherConfig> ReadRunLauncher(YamlSection& top, const std::filesystem::path& file);
/// The launcher of that kind, "slurm", with its defaults. Throws Error(kUsage) for another kind.
LauncherConfig RunLauncherOf(const std::string& kind);
void SetNodes(LauncherConfig* launcher, int nodes);

/// Why `argument` may not be among the arguments of sbatch: evald sets that option itself. "" if it
/// may.
std::string WrongWithSbatch(const std::string& argument);

}  // namespace evald

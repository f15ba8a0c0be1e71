#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

/// What eval.yaml and serve.yaml have in common.
namespace evald {

/// A path in a configuration is relative to the file's folder; "~/" is the home folder.
std::filesystem::path ResolvePath(const std::filesystem::path& file, const std::string& text);

/// Makes the folder that `key` of the configuration `file` names, for this user only
/// (MakePrivateFolder). Throws Error(kUsage) that names both.
void MakeFolderOf(const std::filesystem::path& file, const char* key,
                  const std::filesystem::path& folder);

/// Each reads one section of `top`, with defaults where it is absent. Throws Error(kUsage).
WorkersConfig ReadWorkers(YamlSection& top, const std::string& key);
MetricsConfig ReadMetrics(YamlSection& top);
/// `most` is what is taken for absent keys, and the most that may be asked for; without, there is
/// no such bound.
LimitsConfig ReadLimits(YamlSection& top, const std::optional<LimitsConfig>& most);
StagingConfig ReadStaging(YamlSection& top, const std::filesystem::path& file);

}  // namespace evald

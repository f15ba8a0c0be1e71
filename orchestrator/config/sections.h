#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

/// The parts that eval.yaml and serve.yaml have in common.
namespace evald {

/// A path that is relative to `folder`; "~/" is the home folder.
std::filesystem::path ResolveBelow(const std::filesystem::path& folder, const std::string& text);

/// A path in a configuration is relative to the file's folder.
std::filesystem::path ResolvePath(const std::filesystem::path& file, const std::string& text);

/// Throws Error(kUsage) that names the file and the key if the path is not UTF-8: messages, records
/// and answers are JSON and could not hold the path. The configuration's own folder and the
/// environment may bring such bytes into a path.
void RequireTextPath(const std::string& file, const char* key, const std::filesystem::path& path);

/// Makes the folder that `key` of the configuration `file` names, for this user only
/// (MakePrivateFolder). Throws Error(kUsage) that names the file and the key.
void MakeFolderOf(const std::filesystem::path& file, const char* key,
                  const std::filesystem::path& folder);

/// Each of these reads one section of `top`, and fills in defaults if it is absent. Throws
/// Error(kUsage).
WorkersConfig ReadWorkers(YamlSection& top, const std::string& key);
MetricsConfig ReadMetrics(YamlSection& top);
/// `most` gives the values for absent keys, which are also the upper bounds. Without it there are
/// no upper bounds.
/// The keys `task_code` and `task_python`. `service`: how the service to which the file was
/// submitted runs task code, which the file can only ask for; null for a file of one's own.
TaskCodeOptions ReadTaskCode(YamlSection& top, const std::optional<TaskCodeOptions>& service);

LimitsConfig ReadLimits(YamlSection& top, const std::optional<LimitsConfig>& most);
/// The key cache_limit.
uint64_t ReadCacheLimit(YamlSection& top);
StagingConfig ReadStaging(YamlSection& top, const std::filesystem::path& file);

}  // namespace evald

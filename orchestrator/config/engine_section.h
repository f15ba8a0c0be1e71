#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {

/// Reads the section `engine` of an eval.yaml, config->file known. Relative paths among the
/// settings start from the file's folder. Throws Error(kUsage) "file:line: ..." for an engine or a
/// key that protocol/engine_settings.h does not list; types and values are checked by
/// CheckEngineIsAllowed or CheckEngineSettings.
void ReadEngine(YamlSection& top, EvalConfig* config);

/// The paths among the settings of a configuration by their keys, for whoever says what may be
/// read.
std::map<std::string, std::filesystem::path> PathsOf(const EngineConfig& engine);

}  // namespace evald

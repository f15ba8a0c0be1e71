#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {

/// Reads the section `engine` of an eval.yaml. config->file must be set. Relative paths among the
/// settings start from the file's folder. Throws Error(kUsage) "file:line: ..." for an engine or a
/// key that engines/ does not list. CheckEngineIsAllowed and CheckEngineSettings
/// check types and values.
void ReadEngine(YamlSection& top, EvalConfig* config);

/// The paths among a configuration's settings, by their keys, to check which may be read.
std::map<std::string, std::filesystem::path> PathsOf(const EngineConfig& engine);

}  // namespace evald

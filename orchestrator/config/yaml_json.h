#pragma once

#include <yaml-cpp/yaml.h>

#include "evald/json.h"

namespace evald {

/// A YAML value as JSON: plain scalars by YAML 1.2's core schema, quoted ones as strings. Throws
/// Error(kUsage) if it is nested too deeply, or too large once its aliases are expanded.
Json YamlToJson(const YAML::Node& node);

}  // namespace evald

#pragma once

#include <string>

#include "evald/json.h"
#include "metrics/sandbox/sandbox.h"

namespace evald {

/// SandboxOptions from a JSON object with its members' names. Absent ones keep their defaults.
/// Throws Error(kUsage) "<where>: ..." for an unknown key (with the nearest known one), a wrong
/// type or a value out of range.
SandboxOptions SandboxOptionsFromJson(const Json& json, const std::string& where);
Json ToJson(const SandboxOptions& options);

}  // namespace evald

#pragma once

#include <vector>

#include "engines/engine_setting.h"

namespace evald {

/// The settings of every engine that starts a server program of its own choice
/// (worker/server/options.h says what they mean).
std::vector<EngineSetting> ServerSettings();

}  // namespace evald

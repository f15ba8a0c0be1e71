#pragma once

#include <vector>

#include "engines/engine_kind.h"
#include "engines/engine_setting.h"

namespace evald {

/// The settings of every engine that starts a server program of its own choice
/// (worker/server/options.h says what they mean).
std::vector<EngineSetting> ServerSettings();

/// An engine that starts the server program of its own name on the staged checkpoint, with these
/// settings and no others.
EngineKind StartedServerKind(const char* name);

}  // namespace evald
